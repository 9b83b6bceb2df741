/** The page's end of the channel to the frame: the handshake on the window, then one port. Decision: 11; Security: 2.11. */
import {
  type FrameHello,
  type FrameMessage,
  type PageHello,
  type PageMessage,
  type PortOffer,
  PROTOCOL,
} from '../messages.ts'
import { isFrameMessage } from './check-message.ts'
import { isRecord } from './read-options.ts'

/** After the frame has loaded, so long for its answer. */
const HELLO_WITHIN_MS = 15_000

export interface Channel {
  /** False while there is nobody to hear it. */
  readonly post: (message: PageMessage) => boolean
  readonly close: () => void
}

export interface ChannelEvents {
  /** The frame is there, for the first time or again after it was loaded anew. */
  readonly onConnect: () => void
  readonly onMessage: (message: FrameMessage) => void
  /** The frame has loaded and does not answer. */
  readonly onSilence: () => void
}

/** Greets the frame whenever it has loaded. `origin` is where it comes from: nothing is told to anybody else. */
export function openChannel(frame: HTMLIFrameElement, origin: string, events: ChannelEvents): Channel {
  let session = ''
  let port: MessagePort | undefined
  let silence: ReturnType<typeof setTimeout> | undefined

  function greet(): void {
    port?.close()
    port = undefined
    session = makeSession()
    clearTimeout(silence)
    silence = setTimeout(events.onSilence, HELLO_WITHIN_MS)
    const hello: PageHello = { protocol: PROTOCOL, type: 'page-hello', session }
    frame.contentWindow?.postMessage(hello, origin)
  }

  function answer({ source, origin: from, data }: MessageEvent<unknown>): void {
    if (source !== frame.contentWindow || from !== origin || port !== undefined) return
    if (!isHello(data) || data.session !== session) return
    clearTimeout(silence)
    const channel = new MessageChannel()
    port = channel.port1
    port.onmessage = (event: MessageEvent<unknown>) => {
      if (isFrameMessage(event.data)) events.onMessage(event.data)
    }
    const offer: PortOffer = { protocol: PROTOCOL, type: 'port', session }
    frame.contentWindow?.postMessage(offer, origin, [channel.port2])
    events.onConnect()
  }

  frame.addEventListener('load', greet)
  window.addEventListener('message', answer)
  return {
    post(message) {
      port?.postMessage(message)
      return port !== undefined
    },
    close() {
      clearTimeout(silence)
      frame.removeEventListener('load', greet)
      window.removeEventListener('message', answer)
      port?.close()
    },
  }
}

function isHello(data: unknown): data is FrameHello {
  return isRecord(data) && data.protocol === PROTOCOL && data.type === 'frame-hello'
}

/** `randomUUID` is for secure contexts only, and pages in a local network often are none. */
function makeSession(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('-')
}
