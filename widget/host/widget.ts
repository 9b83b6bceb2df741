/** Mounts the widget: connects the launcher and the frame with the page's options, callbacks and tools. */

import { type FrameMessage, type LauncherWords, NO_TOOL_HANDLER, type PageMessage } from '../messages.ts'
import { isWithinLimit, toPlain } from '../values.ts'
import { openChannel } from './channel.ts'
import { dom } from './dom.ts'
import {
  type ChatMessageEvent,
  createError,
  type Insertion,
  listen,
  log,
  publish,
  reportMistake,
  type Share,
  type WidgetEvents,
} from './events.ts'
import type { Extras } from './extras.ts'
import { type OpenMemory, recallOpen, rememberOpen } from './open-memory.ts'
import { publishChange, sharedPage, type Widget, type WidgetState } from './page.ts'
import {
  frameAddressOf,
  type GivenOptions,
  isLocal,
  type ReadOptions,
  readOptions,
  toFrameOptions,
} from './read-options.ts'
import { createShell } from './shell.ts'
import { findTheme, loadTheme } from './theme.ts'
import { hostWebMcpTools, recordWebMcp } from './tools/webmcp.ts'

type Notify = <Name extends keyof WidgetEvents>(name: Name, detail?: WidgetEvents[Name]) => boolean

/** The parts that the loader and the React component provide differently. */
export interface WidgetParts {
  /** The loader script's address. */
  readonly scriptUrl: string | undefined
  readonly loadExtras: () => Promise<Extras>
  readonly importScript: (url: string) => Promise<unknown>
}

/**
 * Mounts a widget on the page. Returns undefined and calls `onError` if there is already a widget or the
 * container is missing.
 */
export function mountWidget(
  first: GivenOptions,
  { scriptUrl, loadExtras, importScript }: WidgetParts,
): Widget | undefined {
  const page = sharedPage()
  if (page.widget?.iframe.isConnected) return void reportMistake(first, 'already_mounted')
  page.widget?.destroy()
  const { containerId } = first
  const isInline = typeof containerId === 'string'
  if (isInline && !dom.getElementById(containerId))
    return void reportMistake(first, 'container_not_found', containerId)

  let given = first
  let options = readOptions(given, (name) => reportMistake(given, 'invalid_option', name))
  let state: WidgetState = { isReady: false, isOpen: false, hasUnread: false, unreadCount: 0 }
  let memory = options.rememberOpen && !isInline ? recallOpen() : undefined
  let wantsOpen = isInline || (memory === undefined ? options.autoOpen : memory !== 'closed')
  /** Messages for the frame from before it has loaded. */
  const waiting: PageMessage[] = []
  /** Whether the input receives the focus when the frame is connected. */
  let wantsFocus = false
  const webMcpTools = recordWebMcp()
  const ended = new AbortController()
  const shell = createShell(
    isInline ? containerId : undefined,
    { onToggle: toggle, onEscape: close, onApproach: loadFrame },
    ended,
  )
  const channel = openChannel(
    shell.frame,
    {
      onConnect() {
        void tools?.then((server) => server.reset())
        channel.post({ type: 'configure', options: toFrameOptions(options) })
        postContext()
        postVisibility()
        for (const message of waiting.splice(0)) channel.post(message)
      },
      onMessage: receive,
      onSilence: reportSilence,
    },
    ended,
  )
  let extras: Promise<Extras> | undefined
  let tools: Promise<ReturnType<Extras['createToolServer']>> | undefined
  const loadExtrasOnce = () => {
    extras ??= loadExtras()
    return extras
  }

  const notify: Notify = (name, detail) => publish(options, name, detail)

  function change(changes: Partial<WidgetState>): void {
    state = { ...state, ...changes }
    publishChange()
  }

  function receive(message: FrameMessage): void {
    const { type, ...detail } = message
    if (type === 'ready') setConnected(message.words)
    else if (type === 'close') close()
    else if (type === 'expand') setExpanded(memory !== 'expanded')
    else if (type === 'mcp') withTools((server) => server.receive(message.message))
    else if (type === 'message') notify(type, detail as ChatMessageEvent)
    else if (type === 'error') reportFailure(message)
    else if (type === 'share') {
      channel.post({ type, isReceived: notify('user-share', detail as Share) })
    } else if (type === 'insert') {
      notify(type, detail as Insertion)
      if (message.close) close()
    } else {
      shell.setUnread(message.count, message.label)
      change({ hasUnread: message.count > 0, unreadCount: message.count })
      notify(type, { count: message.count })
    }
  }

  function reportFailure({
    code,
    message,
    reason,
    status,
    requestId,
  }: FrameMessage & { type: 'error' }): void {
    notify(
      'error',
      createError(code, message, reason === undefined ? undefined : { reason, status, requestId }),
    )
  }

  /** Shows the launcher. The frame loads later, when the visitor needs it. */
  function setReady(): void {
    if (state.isReady || ended.signal.aborted) return
    paint()
    shell.show()
    change({ isReady: true })
    notify('ready')
    if (wantsOpen) setOpen(true, false)
    else if (options.load === 'idle' || memory) whenIdle(loadFrame)
    startExtras()
  }

  function setConnected(words: LauncherWords): void {
    shell.setWords(words)
    if (state.isOpen && wantsFocus) channel.post({ type: 'focus' })
    wantsFocus = false
  }

  function startExtras(): void {
    const { teaser, teaserDelay, rules, sound, titleBadge, debug } = withTheme(options)
    const isPanel = debug && isLocal(location.hostname)
    if (isInline || !(teaser || rules.length || sound || titleBadge || isPanel)) return
    void loadExtrasOnce().then((loaded) =>
      loaded.startExtras(
        {
          layout: shell.layout,
          closeWord: '×',
          isLocal: isLocal(location.hostname),
          isOpen: () => state.isOpen,
          open: () => setOpen(true),
          on: listen,
          ended: ended.signal,
        },
        { teaser, teaserDelay, rules, sound, titleBadge, debug },
      ),
    )
  }

  /** Tool messages wait until the second script has loaded. */
  function withTools(act: (server: ReturnType<Extras['createToolServer']>) => void): void {
    tools ??= loadExtrasOnce().then(({ createToolServer, hostPageTools }) =>
      createToolServer(
        () => listTools(hostPageTools),
        (message) => channel.post({ type: 'mcp', message }),
      ),
    )
    tools.then(act, () => log('warn', 'page tools could not be loaded'))
  }

  function reportSilence(): void {
    const text = `Does embed.origins list ${location.origin}?`
    reportMistake(options, 'frame_unreachable', text)
    shell.setOpen(false, false)
    shell.hide()
    if (isLocal(location.hostname)) shell.showHint(text)
  }

  function postContext(): void {
    try {
      const context = toPlain(options.context)
      if (isWithinLimit(context)) channel.post({ type: 'context', context })
      else reportMistake(options, 'context_too_large', 'The context is larger than 64 KiB.')
    } catch {
      reportMistake(options, 'invalid_option', 'context')
    }
  }

  function listTools(hostPageTools: Extras['hostPageTools']) {
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
    if (isOpen) loadFrame()
    remember(isOpen ? (memory === 'expanded' ? memory : 'open') : 'closed')
    shell.setExpanded(memory === 'expanded')
    const fields = 'input,textarea,[contenteditable]'
    const takesFocus = isOpen && !isInline && mayFocus && !dom.activeElement?.matches(fields)
    shell.setOpen(isOpen, takesFocus)
    change({ isOpen })
    postVisibility()
    wantsFocus = takesFocus && !channel.post({ type: 'focus' })
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

  function remember(next: OpenMemory): void {
    memory = next
    if (options.rememberOpen && !isInline) rememberOpen(next)
  }

  function setExpanded(isExpanded: boolean): void {
    remember(isExpanded ? 'expanded' : 'open')
    shell.setExpanded(isExpanded)
    postVisibility()
  }

  function postVisibility(): void {
    const canExpand = !isInline && matchMedia('(min-width: 640px)').matches
    const isExpanded = canExpand ? memory === 'expanded' : undefined
    channel.post({ type: 'visibility', isOpen: state.isOpen, isExpanded })
  }

  /** Loads the frame if necessary; the message is sent when the frame is connected. */
  function send(message: PageMessage): void {
    if (channel.post(message)) return
    waiting.push(message)
    loadFrame()
  }

  /** Options of the page override the agent's theme. */
  function withTheme(chosen: ReadOptions): ReadOptions {
    return { ...findTheme(chosen), ...chosen }
  }

  function paint(): void {
    shell.paint(withTheme(options))
  }

  /** Reloads the frame only if its address has changed. */
  function loadFrame(): void {
    if (ended.signal.aborted) return
    const address = frameAddressOf(options, scriptUrl)
    if (shell.frame.src !== address) channel.load(address)
  }

  const widget: Widget = {
    get state() {
      return state
    },
    iframe: shell.frame,
    publishTools: () => void tools?.then((server) => server.publishTools()),
    open: () => setOpen(true),
    close,
    toggle,
    logout: () => send({ type: 'logout' }),
    newConversation: () => send({ type: 'newConversation' }),
    sendMessage(text) {
      setOpen(true)
      send({ type: 'send', text: `${text}` })
    },
    prefill(text) {
      setOpen(true)
      send({ type: 'prefill', text: `${text}` })
    },
    configure(changes) {
      const before = options
      given = { ...given, ...changes }
      options = readOptions(given, (name) => name in changes && reportMistake(given, 'invalid_option', name))
      paint()
      if (shell.frame.src) loadFrame()
      channel.post({ type: 'configure', options: toFrameOptions(options) })
      if (options.context !== before.context) postContext()
      if (options.tools !== before.tools) widget.publishTools()
    },
    destroy() {
      if (page.widget !== widget) return
      page.widget = undefined
      ended.abort()
      shell.remove()
      publishChange()
    },
  }
  shell.attach()
  page.widget = widget
  publishChange()
  // Waits for the theme, so that the launcher does not change its color.
  void loadTheme(options, scriptUrl, importScript).then(setReady)
  return widget
}

function whenIdle(run: () => void): void {
  if ('requestIdleCallback' in window) requestIdleCallback(run)
  else setTimeout(run, 200)
}
