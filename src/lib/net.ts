/** Keeps connections to hosts an operator has named away from the addresses where only credentials live. */

import { lookup as lookupName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'

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

/**
 * Connects to the host the operator configured. That choice is the allow-list: runners and MCP servers live on loopback and in
 * private networks (vLLM, LiteLLM next door), so those stay open. Link-local and cloud metadata addresses hold only
 * credentials, so they are refused however they are reached: as a literal or as the answer of a name server that changed its
 * mind. Every resolved address is checked at the moment of connecting. Security: 2.10
 */
export function createGuardedConnector(connectMs: number, lookup?: LookupFunction): buildConnector.connector {
  const connect = buildConnector({ timeout: connectMs, allowH2: false, lookup: guardLookup(lookup) })
  // A literal address is never looked up.
  return (target, callback) =>
    isForbiddenAddress(target.hostname)
      ? callback(forbiddenAddress(target.hostname), null)
      : connect(target, callback)
}

/** A block of addresses: the network's address and the length of its prefix in bits. */
export type AddressBlock = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Whether an address lies in one of the blocks; IPv4 is IPv4, also where the socket is a dual-stack one. */
export function isWithin(address: string, blocks: readonly AddressBlock[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return blocks.some(([network, bits]) => parsed.kind() === network.kind() && parsed.match(network, bits))
}
