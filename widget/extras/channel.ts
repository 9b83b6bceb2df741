/**
 * Opens the page's end of the channel to the frame, with a handshake of window messages and then one port.
 */
import type { HostWidget } from '../host/extras.ts'
import { type FrameMessage, MAX_MESSAGE_LENGTH, type PageMessage, PROTOCOL } from '../messages.ts'
import { isRecord, isText, newId } from '../values.ts'

interface Channel {
  /** Returns false and drops the message if the frame is not connected. */
  readonly post: (message: PageMessage) => boolean
  readonly disconnect: () => void
}

interface ChannelEvents {
  /** Called whenever the frame has loaded and connected, including reloads. */
  readonly onConnect: () => void
  readonly onMessage: (message: FrameMessage) => void
}

/**
 * Connects to the frame whenever it loads, until `ended` aborts. Posts only to the origin of the frame's
 * address.
 */
export function openChannel(
  { frame, ended, isLoaded, waitForFrame }: HostWidget,
  events: ChannelEvents,
): Channel {
  let session = ''
  let port: MessagePort | undefined
  const originOf = () => new URL(frame.src).origin

  function disconnect(): void {
    port?.close()
    port = undefined
  }

  /** Sends a `PageHello` or a `PortOffer`. */
  function greet(type: 'page-hello' | 'port', ports: MessagePort[]): void {
    frame.contentWindow?.postMessage({ protocol: PROTOCOL, type, session }, originOf(), ports)
  }

  /**
   * Starts the handshake with a timeout, because no event reports that the browser has blocked the frame or
   * that the server has not responded.
   */
  function startHandshake(): void {
    disconnect()
    waitForFrame(true)
    session = newId()
    greet('page-hello', [])
  }

  function receiveHello({ source, origin, data }: MessageEvent<unknown>): void {
    if (source !== frame.contentWindow || origin !== originOf() || port !== undefined || !isRecord(data))
      return
    if (data.protocol !== PROTOCOL || data.type !== 'frame-hello' || data.session !== session) return
    waitForFrame(false)
    const { port1, port2 } = new MessageChannel()
    port = port1
    port1.onmessage = (event: MessageEvent<unknown>) => {
      if (isFrameMessage(event.data)) events.onMessage(event.data)
    }
    greet('port', [port2])
    events.onConnect()
  }

  window.addEventListener('message', receiveHello, ended)
  ended.signal.addEventListener('abort', disconnect)
  frame.onload = startHandshake
  if (isLoaded) startHandshake()
  return {
    disconnect,
    post(message) {
      port?.postMessage(message)
      return port !== undefined
    },
  }
}

/** Ignores unknown fields and accepts unknown error codes, so that a newer frame works with an older page. */
function isFrameMessage(data: unknown): data is FrameMessage {
  if (!isRecord(data)) return false
  const { type, words, count, label, text, code, message, mode } = data
  const isKnown =
    type === 'close' ||
    type === 'expand' ||
    type === 'identity' ||
    (type === 'message' && isText(data.role)) ||
    (type === 'mode' && isText(mode)) ||
    (type === 'ready' && isRecord(words)) ||
    (type === 'unread' && Number.isInteger(count) && isText(label)) ||
    ((type === 'insert' || type === 'share') && isText(text)) ||
    (type === 'error' && isText(code)) ||
    (type === 'mcp' && isRecord(message))
  return isKnown && JSON.stringify(data).length <= MAX_MESSAGE_LENGTH
}
