/** `/metrics`, and who may read it. Decision: 3 (Doors). */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { RequestHandler } from 'express'
import ipaddr from 'ipaddr.js'
import type { Deps } from '../deps.ts'
import type { Scraped } from '../observability/scrape.ts'
import { refuseUnknown } from '../rpc/authorize.ts'
import { type Arrival, CallContext } from '../rpc/context.ts'

/** What proxies add to requests of others. */
const forwardingHeader =
  /^(forwarded|via|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|x-forwarded-.+)$/

/**
 * Answers with everything that is counted: to a program on this machine that nobody has forwarded, and to whoever presents the
 * operator's token. A token that is sent has to be that one, wherever it comes from.
 */
export function createMetricsPage(
  deps: Deps,
  scrape: () => Promise<Scraped>,
  arrivalOf: (request: IncomingMessage) => Arrival,
): RequestHandler {
  const { metricsToken } = deps.config
  const isAdmitted = (request: IncomingMessage, bearer: string | undefined) =>
    bearer === undefined
      ? isFromThisMachine(request)
      : metricsToken !== undefined && isSame(bearer, metricsToken)

  return async (request, response) => {
    const arrival = arrivalOf(request)
    if (!isAdmitted(request, arrival.bearer)) {
      const context = new CallContext(deps, arrival)
      await refuseUnknown(
        context,
        'The metrics are for programs on this machine, and for `Authorization: Bearer <PARLEY_METRICS_TOKEN>`.',
        'This is not the token of the metrics.',
      )
    }
    const { mediaType, text } = await scrape()
    response.type(mediaType).send(text)
  }
}

function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? ''
  if (!ipaddr.isValid(address) || ipaddr.process(address).range() !== 'loopback') return false
  return !Object.keys(headers).some((name) => forwardingHeader.test(name))
}

/** Digests are of one length whatever was sent, so comparing takes as long for every token. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'))
}
