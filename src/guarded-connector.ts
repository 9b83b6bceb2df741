/** Opens sockets to hosts an operator has named, but never where only credentials live. */
import { lookup as lookupName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'

/** Where clouds answer with an instance's credentials, besides the link-local ranges. */
const metadataAddresses = new Set(['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200', '192.0.0.192'])

function isForbiddenAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return parsed.range() === 'linkLocal' || metadataAddresses.has(parsed.toString())
}

/**
 * Connects to the host the operator configured. That choice is the allow-list: runners and MCP servers live on loopback and in
 * private networks (vLLM, LiteLLM next door), so those stay open. Link-local and cloud metadata addresses hold only
 * credentials, so they are refused however they are reached: as a literal or as the answer of a name server that changed its
 * mind. Every resolved address is checked at the moment of connecting. Security: 2.10
 */
export function createGuardedConnector(
  connectMs: number,
  lookup: LookupFunction = lookupName,
): buildConnector.connector {
  const guardedLookup: LookupFunction = (hostname, lookupOptions, callback) => {
    lookup(hostname, lookupOptions, (error, found, family) => {
      if (error !== null) return callback(error, found, family)
      const addresses = typeof found === 'string' ? [found] : found.map((each) => each.address)
      if (addresses.some(isForbiddenAddress)) return callback(forbidden(hostname), found, family)
      callback(null, found, family)
    })
  }
  const connect = buildConnector({ timeout: connectMs, allowH2: false, lookup: guardedLookup })
  // A literal address is never looked up.
  return (target, callback) =>
    isForbiddenAddress(target.hostname)
      ? callback(forbidden(target.hostname), null)
      : connect(target, callback)
}

function forbidden(hostname: string): Error {
  return new Error(`${hostname} is a link-local or metadata address, where nothing of ours is.`)
}
