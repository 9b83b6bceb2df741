/** The page's end of the channel to the frame: the handshake on the window, then one port. Decision: 11; Security: 2.11. */
import { type FrameMessage, MOST_MESSAGE_LENGTH, type PageMessage, PROTOCOL } from '../messages.ts'
import { isRecord, isText, newId } from '../values.ts'

/** After the frame has loaded, so long for its answer. */
const HELLO_WITHIN_MS = 15_000

export interface Channel {
  /** Nothing happens while there is nobody to hear it. */
  readonly post: (message: PageMessage) => void
  readonly close: () => void
}

interface ChannelEvents {
  /** The frame is there, for the first time or again after it was loaded anew. */
  readonly onConnect: () => void
  readonly onMessage: (message: FrameMessage) => void
  /** The frame has loaded and does not answer. */
  readonly onSilence: () => void
}

/** Greets the frame whenever it has loaded, and tells nothing to anybody but the origin of its address; until `ended`. */
export function openChannel(
  frame: HTMLIFrameElement,
  events: ChannelEvents,
  ended: AbortController,
): Channel {
  let session = ''
  let port: MessagePort | undefined
  let silence: ReturnType<typeof setTimeout> | undefined
  const originOf = () => new URL(frame.src).origin

  function forget(): void {
    clearTimeout(silence)
    port?.close()
    port = undefined
  }

  /** Protocol: `PageHello` and `PortOffer` of messages.ts. */
  function say(type: 'page-hello' | 'port', ports: MessagePort[]): void {
    frame.contentWindow?.postMessage({ protocol: PROTOCOL, type, session }, originOf(), ports)
  }

  frame.onload = () => {
    forget()
    session = newId()
    silence = setTimeout(events.onSilence, HELLO_WITHIN_MS)
    say('page-hello', [])
  }

  function hear({ source, origin, data }: MessageEvent<unknown>): void {
    if (source !== frame.contentWindow || origin !== originOf() || port !== undefined || !isRecord(data))
      return
    if (data.protocol !== PROTOCOL || data.type !== 'frame-hello' || data.session !== session) return
    clearTimeout(silence)
    const { port1, port2 } = new MessageChannel()
    port = port1
    port1.onmessage = (event: MessageEvent<unknown>) => {
      if (isFrameMessage(event.data)) events.onMessage(event.data)
    }
    say('port', [port2])
    events.onConnect()
  }

  window.addEventListener('message', hear, ended)
  return {
    post: (message) => port?.postMessage(message),
    close() {
      forget()
      frame.onload = null
    },
  }
}

/** Fields nobody knows, and codes of errors, are passed over: a newer frame can speak to an older page. */
function isFrameMessage(data: unknown): data is FrameMessage {
  if (!isRecord(data)) return false
  const { type, words, count, label, text, code, message } = data
  const isFit =
    type === 'close' ||
    (type === 'ready' && isRecord(words)) ||
    (type === 'unread' && Number.isInteger(count) && isText(label)) ||
    (type === 'insert' && isText(text)) ||
    (type === 'share' && isText(text)) ||
    (type === 'error' && isText(code)) ||
    (type === 'mcp' && isRecord(message))
  return isFit && JSON.stringify(data).length <= MOST_MESSAGE_LENGTH
}
