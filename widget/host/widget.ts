/** The widget on a page: launcher, frame, and everything between the page and the person who chats in it. */
import type { FrameMessage } from '../messages.ts'
import { isWithinLimit, toPlain } from '../values.ts'
import { openChannel } from './channel.ts'
import { callPage, dispatch, say, tellFailure, tellMistake, type WidgetEvents } from './events.ts'
import { announceChange, sharedPage, type Widget, type WidgetState } from './page.ts'
import {
  frameAddressOf,
  type GivenOptions,
  isLocalPage,
  readOptions,
  toFrameOptions,
} from './read-options.ts'
import { createShell } from './shell.ts'
import { hostPageTools } from './tools/page-tools.ts'
import { createToolServer } from './tools/tool-server.ts'
import { hostWebMcpTools, recordWebMcp } from './tools/webmcp.ts'

/**
 * Puts a widget on the page. Undefined, and `onError` says why, where there is one already or where it should stand is not there.
 * `scriptUrl` is where the code came from.
 */
export function mountWidget(first: GivenOptions, scriptUrl?: string): Widget | undefined {
  const page = sharedPage()
  if (page.widget !== undefined) return void tellMistake(first, 'already_mounted')
  const { containerId } = first
  const container = document.getElementById(containerId ?? '') ?? undefined
  const isInline = typeof containerId === 'string'
  if (isInline && container === undefined) return void tellMistake(first, 'container_not_found', containerId)

  let given = first
  let options = readOptions(given, (name) => tellMistake(given, 'invalid_option', name))
  let state: WidgetState = { isReady: false, isOpen: false, hasUnread: false }
  let wantsOpen = options.autoOpen || isInline
  const recorded = recordWebMcp()
  const ended = new AbortController()
  const shell = createShell(container, { onToggle: toggle, onEscape: close }, ended)
  const channel = openChannel(
    shell.frame,
    {
      onConnect() {
        tools.reset()
        channel.post({ type: 'configure', options: toFrameOptions(options) })
        postContext()
        channel.post({ type: 'visibility', isOpen: state.isOpen })
      },
      onMessage: receive,
      onSilence: tellSilence,
    },
    ended,
  )
  const tools = createToolServer(listTools, (message) => channel.post({ type: 'mcp', message }))
  recorded.listeners.add(tools.announceTools)

  function change(changes: Partial<WidgetState>): void {
    state = { ...state, ...changes }
    announceChange()
  }

  /** The document hears of it, and the callback. */
  function tell<Name extends keyof WidgetEvents>(
    name: Name,
    detail: WidgetEvents[Name],
    callback?: (detail: WidgetEvents[Name]) => void,
  ): void {
    if (options.debug) say('info', name)
    dispatch(name, detail)
    if (callback !== undefined) callPage(() => callback(detail))
  }

  function receive(message: FrameMessage): void {
    const { type } = message
    if (type === 'ready') becomeReady(message.words)
    else if (type === 'close') close()
    else if (type === 'mcp') tools.receive(message.message)
    else if (type === 'error') tellFailure(options, message.code, message.message)
    else if (type === 'share') {
      tell('user-share', { kind: message.kind, text: message.text }, options.onUserShare)
    } else if (type === 'insert') {
      tell(type, { text: message.text, close: message.close }, options.onInsert)
      if (message.close) close()
    } else {
      shell.setUnread(message.count, message.label)
      change({ hasUnread: message.count > 0 })
      tell(type, { count: message.count })
    }
  }

  function becomeReady(words: Parameters<typeof shell.show>[0]): void {
    shell.show(words)
    if (state.isReady) return
    change({ isReady: true })
    tell('ready', undefined, options.onReady)
    if (wantsOpen) setOpen(true)
  }

  function tellSilence(): void {
    const { origin } = new URL(shell.frame.src)
    const text = `No answer from ${origin}. Does the agent's embed.origins list ${location.origin}?`
    tellMistake(options, 'frame_unreachable', text)
    if (isLocalPage()) shell.showHint(text)
  }

  function postContext(): void {
    try {
      if (isWithinLimit(JSON.stringify(options.context)))
        channel.post({ type: 'context', context: toPlain(options.context) })
      else tellMistake(options, 'context_too_large', 'More than 64 KiB')
    } catch {
      tellMistake(options, 'invalid_option', 'context')
    }
  }

  function listTools() {
    const own = hostPageTools(options.tools, (call) => {
      tell('tool-call', call)
      return options.onToolCall?.(call.tool, call.args, call.sendResult)
    })
    return new Map([...hostWebMcpTools(recorded.tools), ...own])
  }

  function setOpen(isOpen: boolean): void {
    wantsOpen = isOpen
    if (!state.isReady || state.isOpen === isOpen) return
    shell.setOpen(isOpen)
    change({ isOpen })
    channel.post({ type: 'visibility', isOpen })
    if (isOpen && !isInline) channel.post({ type: 'focus' })
    if (isOpen) tell('opened', undefined, options.onOpen)
    else tell('closed', undefined, options.onClose)
  }

  /** In a container of the page there is nothing to close. */
  function close(): void {
    if (!isInline) setOpen(false)
  }

  function toggle(): void {
    if (wantsOpen) close()
    else setOpen(true)
  }

  /** Shows the options; what the frame shows already is not loaded again. */
  function apply(): void {
    shell.paint(options)
    const address = frameAddressOf(options, scriptUrl)
    if (shell.frame.src !== address) shell.frame.src = address
  }

  const widget: Widget = {
    get state() {
      return state
    },
    iframe: shell.frame,
    open: () => setOpen(true),
    close,
    toggle,
    configure(changes) {
      const before = options
      given = { ...given, ...changes }
      options = readOptions(given, (name) => name in changes && tellMistake(given, 'invalid_option', name))
      apply()
      channel.post({ type: 'configure', options: toFrameOptions(options) })
      if (options.context !== before.context) postContext()
      if (options.tools !== before.tools) tools.announceTools()
    },
    destroy() {
      if (page.widget !== widget) return
      page.widget = undefined
      recorded.listeners.delete(tools.announceTools)
      ended.abort()
      tools.reset()
      channel.close()
      shell.remove()
      announceChange()
    },
  }
  apply()
  shell.attach()
  page.widget = widget
  announceChange()
  return widget
}
