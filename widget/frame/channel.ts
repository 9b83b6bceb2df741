/** The frame's end of the channel to the page: the handshake on the window, then one port. Decision: 11; Security: 2.11. */
import {
  type FrameHello,
  type FrameMessage,
  MOST_MESSAGE_LENGTH,
  type PageHello,
  type PageMessage,
  type PortOffer,
  PROTOCOL,
} from '../messages.ts'
import { isPageMessage } from './check-message.ts'

/** The channel, once the page has opened it. */
export interface Channel {
  readonly post: (message: FrameMessage) => void
}

/**
 * Waits for the page around this frame. `onMessage` is called with every message of the page that has the form it must have; what
 * comes from anybody else, or a second time, is dropped in silence.
 */
export function openChannel(onMessage: (message: PageMessage, channel: Channel) => void): void {
  let hello: { readonly origin: string; readonly session: string } | undefined
  let port: MessagePort | undefined

  window.addEventListener('message', ({ source, origin, data, ports }) => {
    // A page without an origin of its own cannot be told apart from others, nor be answered to.
    if (source !== window.parent || source === window || origin === 'null') return
    if (hello === undefined && isGreeting(data, 'page-hello')) {
      hello = { origin, session: data.session }
      const answer: FrameHello = { protocol: PROTOCOL, type: 'frame-hello', session: data.session }
      window.parent.postMessage(answer, origin)
    } else if (port === undefined && isGreeting(data, 'port') && ports.length === 1) {
      if (origin !== hello?.origin || data.session !== hello.session) return
      port = ports[0] as MessagePort
      listen(port, onMessage)
    }
  })
}

function listen(port: MessagePort, onMessage: (message: PageMessage, channel: Channel) => void): void {
  const channel: Channel = { post: (message) => port.postMessage(message) }
  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (isBounded(data) && isPageMessage(data)) onMessage(data, channel)
  }
}

function isGreeting<T extends 'page-hello' | 'port'>(
  data: unknown,
  type: T,
): data is T extends 'port' ? PortOffer : PageHello {
  const { protocol, type: sent, session } = (data ?? {}) as Partial<Record<keyof PageHello, unknown>>
  return protocol === PROTOCOL && sent === type && typeof session === 'string' && session.length <= 128
}

/** Also refuses what JSON cannot hold: the channel carries nothing else. */
function isBounded(data: unknown): boolean {
  try {
    return (JSON.stringify(data)?.length ?? 0) <= MOST_MESSAGE_LENGTH
  } catch {
    return false
  }
}
