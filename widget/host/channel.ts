/** Opens the page's end of the channel to the frame: a window message handshake, then one port. */
import { type FrameMessage, MAX_MESSAGE_LENGTH, type PageMessage, PROTOCOL } from '../messages.ts'
import { isRecord, isText, newId } from '../values.ts'

/** Maximum time for the frame to load and respond, in milliseconds. */
const HELLO_TIMEOUT_MS = 15_000

interface Channel {
  /** Loads the frame from this address, without adding an entry to the page's session history. */
  readonly load: (address: string) => void
  /** Returns false and drops the message if the frame is not connected. */
  readonly post: (message: PageMessage) => boolean
}

interface ChannelEvents {
  /** Called whenever the frame has loaded and connected, including reloads. */
  readonly onConnect: () => void
  readonly onMessage: (message: FrameMessage) => void
  /** Called if the frame does not respond. */
  readonly onSilence: () => void
}

/**
 * Connects to the frame whenever it loads, until `ended` aborts. Posts only to the origin of the frame's
 * address.
 */
export function openChannel(
  frame: HTMLIFrameElement,
  events: ChannelEvents,
  ended: AbortController,
): Channel {
  let session = ''
  let port: MessagePort | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const originOf = () => new URL(frame.src).origin

  function disconnect(): void {
    clearTimeout(timer)
    port?.close()
    port = undefined
  }

  /** Sends a `PageHello` or a `PortOffer`. */
  function greet(type: 'page-hello' | 'port', ports: MessagePort[]): void {
    frame.contentWindow?.postMessage({ protocol: PROTOCOL, type, session }, originOf(), ports)
  }

  /**
   * Starts a timeout. If the browser blocks the frame or the server does not respond, no other event reports
   * it.
   */
  function expectHello(): void {
    disconnect()
    timer = setTimeout(events.onSilence, HELLO_TIMEOUT_MS)
  }

  frame.onload = () => {
    // An empty frame, until the visitor needs the chat.
    if (!frame.src) return
    expectHello()
    session = newId()
    greet('page-hello', [])
  }

  function receiveHello({ source, origin, data }: MessageEvent<unknown>): void {
    if (
      !frame.src ||
      source !== frame.contentWindow ||
      origin !== originOf() ||
      port !== undefined ||
      !isRecord(data)
    )
      return
    if (data.protocol !== PROTOCOL || data.type !== 'frame-hello' || data.session !== session) return
    clearTimeout(timer)
    const { port1, port2 } = new MessageChannel()
    port = port1
    port1.onmessage = (event: MessageEvent<unknown>) => {
      if (isFrameMessage(event.data)) events.onMessage(event.data)
    }
    greet('port', [port2])
    events.onConnect()
  }

  window.addEventListener('message', receiveHello, ended)
  ended.signal.onabort = disconnect
  return {
    load(address) {
      const parent = frame.parentNode
      // Removes and inserts the frame, so that the new address does not add an entry to the page's session
      // history.
      frame.remove()
      frame.src = address
      parent?.append(frame)
      expectHello()
    },
    post(message) {
      port?.postMessage(message)
      return port !== undefined
    },
  }
}

/** Ignores unknown fields and accepts unknown error codes, so that a newer frame works with an older page. */
function isFrameMessage(data: unknown): data is FrameMessage {
  if (!isRecord(data)) return false
  const { type, words, count, label, text, code, message } = data
  const isKnown =
    type === 'close' ||
    type === 'expand' ||
    (type === 'message' && isText(data.role)) ||
    (type === 'ready' && isRecord(words)) ||
    (type === 'unread' && Number.isInteger(count) && isText(label)) ||
    ((type === 'insert' || type === 'share') && isText(text)) ||
    (type === 'error' && isText(code)) ||
    (type === 'mcp' && isRecord(message))
  return isKnown && JSON.stringify(data).length <= MAX_MESSAGE_LENGTH
}
