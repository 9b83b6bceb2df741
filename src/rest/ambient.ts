/** Which requests may be known by more than a key: those of the console's own doors, and those about artifacts. */
import type { IncomingMessage } from 'node:http'
import type { Ambient } from '../console/identity.ts'

/** What a request can be known by; undefined where only a key counts. Decision: 10. */
export function ambientOf(request: IncomingMessage): Ambient | undefined {
  const { method = '', url = '', headers, rawHeaders, socket } = request
  if (!/^\/(v1\/manager|trpc|artifacts|upload)(\/|\?|$)/.test(url)) return undefined
  // Somebody who sends a token, even an empty one, wants to be known by that.
  if (/^bearer\b/i.test(headers.authorization ?? '')) return undefined
  return { method, headers, rawHeaders, peerAddress: socket.remoteAddress ?? '' }
}
