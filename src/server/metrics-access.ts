/** `/metrics`, and who may read it. Decision: 3 (Doors). */

import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import { refuseUnknown } from '../operations/authorize.ts'
import type { Dependencies } from '../operations/dependencies.ts'
import { type Arrival, CallContext } from '../operations/operation.ts'

/** What proxies add to requests of others. */
const forwardingHeader =
  /^(forwarded|via|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|x-forwarded-.+)$/

const words = {
  missing:
    'The metrics are for programs on this machine, and for `Authorization: Bearer <PARLEY_METRICS_TOKEN>`.',
  invalid: 'This is not the token of the metrics.',
}

/**
 * Lets pass a program on this machine that nobody has forwarded, and whoever presents the operator's token. A token that is sent has to be
 * that one, wherever it comes from.
 * @throws ServiceError `missing_api_key`, `invalid_api_key`, `rate_limit_exceeded`.
 */
export async function assertMayReadMetrics(
  deps: Dependencies,
  request: IncomingMessage,
  arrival: Arrival,
): Promise<void> {
  const { metricsToken } = deps.config
  const { bearer } = arrival
  const isAdmitted =
    bearer === undefined
      ? isFromThisMachine(request)
      : metricsToken !== undefined && isSame(bearer, metricsToken)
  if (!isAdmitted) await refuseUnknown(new CallContext(deps, arrival), words)
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
