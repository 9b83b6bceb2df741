/** Mounts the widget: connects the launcher and the frame with the page's options, callbacks and tools. */

import { type FrameMessage, NO_TOOL_HANDLER } from '../messages.ts'
import { isWithinLimit, toPlain } from '../values.ts'
import { openChannel } from './channel.ts'
import { dom } from './dom.ts'
import {
  createError,
  type Insertion,
  publish,
  reportMistake,
  type Share,
  type WidgetEvents,
} from './events.ts'
import { publishChange, sharedPage, type Widget, type WidgetState } from './page.ts'
import { frameAddressOf, type GivenOptions, isLocal, readOptions, toFrameOptions } from './read-options.ts'
import { createShell } from './shell.ts'
import { hostPageTools } from './tools/page-tools.ts'
import { createToolServer } from './tools/tool-server.ts'
import { hostWebMcpTools, recordWebMcp } from './tools/webmcp.ts'

type Notify = <Name extends keyof WidgetEvents>(name: Name, detail?: WidgetEvents[Name]) => boolean

/**
 * Mounts a widget on the page. Returns undefined and calls `onError` if there is already a widget or the
 * container is missing. `scriptUrl` is the loader script's address.
 */
export function mountWidget(first: GivenOptions, scriptUrl?: string): Widget | undefined {
  const page = sharedPage()
  if (page.widget?.iframe.isConnected) return void reportMistake(first, 'already_mounted')
  page.widget?.destroy()
  const { containerId } = first
  const isInline = typeof containerId === 'string'
  if (isInline && !dom.getElementById(containerId))
    return void reportMistake(first, 'container_not_found', containerId)

  let given = first
  let options = readOptions(given, (name) => reportMistake(given, 'invalid_option', name))
  let state: WidgetState = { isReady: false, isOpen: false, hasUnread: false }
  let wantsOpen = options.autoOpen || isInline
  let isLoggedOut = false
  const webMcpTools = recordWebMcp()
  const ended = new AbortController()
  const shell = createShell(isInline ? containerId : undefined, { onToggle: toggle, onEscape: close }, ended)
  const channel = openChannel(
    shell.frame,
    {
      onConnect() {
        tools.reset()
        channel.post({ type: 'configure', options: toFrameOptions(options) })
        if (isLoggedOut) logout()
        postContext()
        channel.post({ type: 'visibility', isOpen: state.isOpen })
      },
      onMessage: receive,
      onSilence: reportSilence,
    },
    ended,
  )
  const tools = createToolServer(listTools, (message) => channel.post({ type: 'mcp', message }))

  const notify: Notify = (name, detail) => publish(options, name, detail)

  function change(changes: Partial<WidgetState>): void {
    state = { ...state, ...changes }
    publishChange()
  }

  function receive(message: FrameMessage): void {
    const { type, ...detail } = message
    if (type === 'ready') setReady(message.words)
    else if (type === 'close') close()
    else if (type === 'mcp') tools.receive(message.message)
    else if (type === 'error') notify('error', createError(message.code, message.message))
    else if (type === 'share') {
      channel.post({ type, isReceived: notify('user-share', detail as Share) })
    } else if (type === 'insert') {
      notify(type, detail as Insertion)
      if (message.close) close()
    } else {
      shell.setUnread(message.count, message.label)
      change({ hasUnread: message.count > 0 })
      notify(type, { count: message.count })
    }
  }

  function setReady(words: Parameters<typeof shell.show>[0]): void {
    shell.show(words)
    if (state.isReady) return
    change({ isReady: true })
    notify('ready')
    if (wantsOpen) setOpen(true, false)
  }

  function reportSilence(): void {
    const text = `Does embed.origins list ${location.origin}?`
    reportMistake(options, 'frame_unreachable', text)
    if (isLocal(location.hostname)) shell.showHint(text)
  }

  function postContext(): void {
    try {
      const context = toPlain(options.context)
      if (isWithinLimit(context)) channel.post({ type: 'context', context })
      else reportMistake(options, 'context_too_large', 'More than 64 KiB')
    } catch {
      reportMistake(options, 'invalid_option', 'context')
    }
  }

  function listTools() {
    const own = hostPageTools(options.tools, (call) => {
      if (!notify('tool-call', call) && !options.onToolCall) throw NO_TOOL_HANDLER
      return options.onToolCall?.(call.tool, call.args, call.sendResult)
    })
    return new Map([...hostWebMcpTools(webMcpTools), ...own])
  }

  /** Opens or closes the window. Does not move the focus out of a field in which the user may be typing. */
  function setOpen(isOpen: boolean, mayFocus = true): void {
    wantsOpen = isOpen
    if (!state.isReady || state.isOpen === isOpen) return
    const fields = 'input,textarea,[contenteditable]'
    const takesFocus = isOpen && !isInline && mayFocus && !dom.activeElement?.matches(fields)
    shell.setOpen(isOpen, takesFocus)
    change({ isOpen })
    channel.post({ type: 'visibility', isOpen })
    if (takesFocus) channel.post({ type: 'focus' })
    notify(isOpen ? 'opened' : 'closed')
  }

  /** Has no effect on an inline widget, which is always open. */
  function close(): void {
    if (!isInline) setOpen(false)
  }

  function toggle(): void {
    if (wantsOpen) close()
    else setOpen(true)
  }

  /** The message is sent again when the frame connects. */
  function logout(): void {
    isLoggedOut = !channel.post({ type: 'logout' })
  }

  /** Reloads the frame only if its address has changed. */
  function paint(): void {
    shell.paint(options)
    const address = frameAddressOf(options, scriptUrl)
    if (shell.frame.src !== address) channel.load(address)
  }

  const widget: Widget = {
    get state() {
      return state
    },
    iframe: shell.frame,
    publishTools: tools.publishTools,
    open: () => setOpen(true),
    close,
    toggle,
    logout,
    newConversation: () => channel.post({ type: 'newConversation' }),
    configure(changes) {
      const before = options
      given = { ...given, ...changes }
      options = readOptions(given, (name) => name in changes && reportMistake(given, 'invalid_option', name))
      paint()
      channel.post({ type: 'configure', options: toFrameOptions(options) })
      if (options.context !== before.context) postContext()
      if (options.tools !== before.tools) tools.publishTools()
    },
    destroy() {
      if (page.widget !== widget) return
      page.widget = undefined
      ended.abort()
      shell.remove()
      publishChange()
    },
  }
  paint()
  shell.attach()
  page.widget = widget
  publishChange()
  return widget
}
