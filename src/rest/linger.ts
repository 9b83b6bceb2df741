/** Ends answers to clients that are still sending a body nobody will read. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** For so long what is still on its way is read and thrown away. */
const LINGER_MS = 1_000

/** Whether a part of the request's body has not arrived yet. */
export function isStillSending({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/**
 * Ends an answer that carries `Connection: close`. Closing at once would reset the connection of a client that is still
 * sending, before it has read why; so its body is thrown away for a while first.
 */
export function endAndLinger(
  request: IncomingMessage,
  response: ServerResponse,
  body: readonly Uint8Array[],
): void {
  for (const piece of body) response.write(piece)
  const end = () => response.end()
  request.once('end', end).once('close', end).resume()
  cutOffLater(request)
}

/** Sees to it that a body which is still on its way when its answer is complete does not come for ever. */
export function boundUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (isStillSending(request)) cutOffLater(request)
  })
}

function cutOffLater(request: IncomingMessage): void {
  const timer = setTimeout(() => request.destroy(), LINGER_MS)
  const stop = () => clearTimeout(timer)
  request.once('end', stop).once('close', stop)
}
