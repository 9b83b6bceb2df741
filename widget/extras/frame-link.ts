/** Connects the frame with the page's options, callbacks and tools. */
import type { ChatMessageEvent, Insertion, Share } from '../host/events.ts'
import type { FrameLink, HostWidget } from '../host/extras.ts'
import type { ReadOptions } from '../host/read-options.ts'
import type { FrameMessage, LauncherWords, PageMessage } from '../messages.ts'
import type { FrameOptions } from '../options.ts'
import { isText, isWithinLimit, toPlain } from '../values.ts'
import { openChannel } from './channel.ts'
import { wasReported } from './check-options.ts'
import { listTools } from './page-tools.ts'
import { addStyles } from './styles.ts'
import { createToolServer } from './tool-server.ts'
import { fitToViewport, setUnread } from './window.ts'

interface Sent {
  readonly options?: ReadOptions
  readonly isOpen?: boolean
  readonly isExpanded?: boolean | undefined
}

/** Connects whenever the frame loads, until the widget ends. */
export function linkFrame(widget: HostWidget): FrameLink {
  /** Messages to send when the frame has connected. */
  const waiting: PageMessage[] = []
  /** Whether the input receives the focus when the frame is ready. */
  let wantsFocus = false
  let sent: Sent = {}
  /** Aborts when the page resets its visitor: a token that was requested before can be the old user's. */
  let visitor = new AbortController()
  const tools = createToolServer(
    () => listTools(widget),
    (message) => channel.post({ type: 'mcp', message }),
  )
  const channel = openChannel(widget, {
    onConnect() {
      tools.reset()
      sent = {}
      sendChanges()
      for (const message of waiting.splice(0)) channel.post(message)
    },
    onMessage(message) {
      if (message.type === 'mcp') tools.receive(message.message)
      else if (message.type === 'ready') setReady(message.words)
      else if (message.type === 'identity') void sendIdentity(widget, channel.post, visitor.signal)
      else if (message.type === 'share') {
        const { type, ...detail } = message
        channel.post({ type, isReceived: widget.notify('user-share', detail as Share) })
      } else receive(widget, message)
    },
  })

  function setReady(words: LauncherWords): void {
    showConnected(widget, words)
    if (widget.state.isOpen && wantsFocus) channel.post({ type: 'focus' })
    wantsFocus = false
  }

  function sendChanges(): void {
    const before = sent
    const { options } = widget
    const { isOpen } = widget.state
    const isExpanded = canExpand(widget) ? widget.isExpanded : undefined
    if (options !== before.options) {
      if (!channel.post({ type: 'configure', options: toFrameOptions(options) })) return
      if (options.context !== before.options?.context) postContext(widget, channel.post)
      if (before.options && options.tools !== before.options.tools) tools.publishTools()
    }
    if (isOpen !== before.isOpen || isExpanded !== before.isExpanded)
      channel.post({ type: 'visibility', isOpen, isExpanded })
    sent = { options, isOpen, isExpanded }
  }

  addStyles(widget.layout)
  fitToViewport(widget)
  return {
    send(type, text) {
      if (type === 'resetVisitor') {
        visitor.abort()
        visitor = new AbortController()
      }
      const message = { type, text: `${text}` }
      if (!channel.post(message)) waiting.push(message)
    },
    update(takesFocus) {
      sendChanges()
      if (takesFocus !== undefined) wantsFocus = takesFocus && !channel.post({ type: 'focus' })
    },
    publishTools: tools.publishTools,
    disconnect: channel.disconnect,
  }
}

/** Handles the messages that need no reply. */
function receive(
  widget: HostWidget,
  message: Exclude<FrameMessage, { type: 'mcp' | 'ready' | 'share' | 'identity' }>,
): void {
  const { type, ...detail } = message
  if (type === 'close') widget.close()
  else if (type === 'expand') widget.expand(!widget.isExpanded)
  else if (type === 'message') widget.notify(type, detail as ChatMessageEvent)
  else if (type === 'mode') widget.notify(type, { mode: message.mode })
  else if (type === 'error') reportFailure(widget, message)
  else if (type === 'insert') {
    widget.notify(type, detail as Insertion)
    if (message.close) widget.close()
  } else {
    const { count, label } = message
    setUnread(widget, count, label)
    widget.change({ hasUnread: count > 0, unreadCount: count })
    widget.notify(type, { count })
  }
}

/** Sends the page's JWT, or no token if the page has none. Sends nothing if `reset` aborts before. */
async function sendIdentity(
  { options }: HostWidget,
  post: (message: PageMessage) => boolean,
  reset: AbortSignal,
): Promise<void> {
  let token: unknown
  try {
    token = await options.getVisitorToken?.()
  } catch (error) {
    reportError(error)
  }
  if (!reset.aborted) post({ type: 'identity', ...(isText(token) && { token }) })
}

function reportFailure(
  widget: HostWidget,
  { code, message, reason, status, requestId }: FrameMessage & { readonly type: 'error' },
): void {
  if (wasReported(widget, code, message)) return
  const details = reason === undefined ? {} : { reason, status, requestId }
  widget.notify('error', Object.assign(new Error(message), { code, ...details }))
}

function showConnected({ layout, frame, changeLauncher }: HostWidget, words: LauncherWords): void {
  frame.title = words.window
  layout.classList.add('connected')
  layout.querySelector('[role]')?.remove()
  changeLauncher(words)
}

function canExpand({ isInline }: HostWidget): boolean {
  return !isInline && matchMedia('(min-width: 640px)').matches
}

function postContext({ options, report }: HostWidget, post: (message: PageMessage) => boolean): void {
  try {
    const context = toPlain(options.context)
    if (isWithinLimit(context)) post({ type: 'context', context })
    else report('context_too_large', 'The context is larger than 64 KiB.')
  } catch {
    report('invalid_option', 'context')
  }
}

/** Returns the options for the frame, which ignores those that concern only the page. */
function toFrameOptions({
  context: _context,
  tools: _tools,
  rules: _rules,
  ...options
}: ReadOptions): FrameOptions {
  return toPlain({ ...options, isInline: options.containerId !== undefined, given: Object.keys(options) })
}
