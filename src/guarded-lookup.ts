/** Keeps connections to hosts an operator has named away from the addresses where only credentials live. */
import { lookup as lookupName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Where clouds answer with an instance's credentials, besides the link-local ranges. */
const metadataAddresses = new Set(['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200', '192.0.0.192'])

/** Whether a host is such an address, in any spelling; a name never is. */
export function isForbiddenAddress(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1')
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return parsed.range() === 'linkLocal' || metadataAddresses.has(parsed.toString())
}

/**
 * Resolves names, but refuses those that lead to such an address: every answer is checked at the moment of connecting, for a name
 * server can change its mind. A literal address is never looked up, so whoever connects checks that itself. Security: 2.10
 */
export function guardLookup(lookup: LookupFunction = lookupName): LookupFunction {
  return (hostname, lookupOptions, callback) => {
    lookup(hostname, lookupOptions, (error, found, family) => {
      if (error !== null) return callback(error, found, family)
      const addresses = typeof found === 'string' ? [found] : found.map((each) => each.address)
      if (addresses.some(isForbiddenAddress)) return callback(forbiddenAddress(hostname), found, family)
      callback(null, found, family)
    })
  }
}

export function forbiddenAddress(hostname: string): Error {
  return new Error(`${hostname} is a link-local or metadata address, where nothing of ours is.`)
}
