/** Checks network addresses, and prevents connections to cloud metadata services. */
import { lookup as lookupName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'

/** Metadata services of clouds outside of the link-local ranges; they return credentials of the instance. */
const metadataAddresses = new Set(['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200', '192.0.0.192'])

/** Whether a host is such an address, in any notation; a host name never is. */
export function isForbiddenAddress(host: string): boolean {
  const address = withoutZone(host.replace(/^\[(.*)\]$/, '$1'))
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return parsed.range() === 'linkLocal' || metadataAddresses.has(parsed.toString())
}

/** Rejects forbidden addresses at each connection, because DNS answers change; the caller has to check literal addresses. */
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
  return new Error(`${hostname} is a link-local or metadata address; connections to those are not allowed.`)
}

/** Allows loopback and private networks, where model and MCP servers run; rejects link-local and metadata addresses. */
export function createGuardedConnector(connectMs: number, lookup?: LookupFunction): buildConnector.connector {
  const connect = buildConnector({ timeout: connectMs, allowH2: false, lookup: guardLookup(lookup) })
  return (target, callback) =>
    isForbiddenAddress(target.hostname)
      ? callback(forbiddenAddress(target.hostname), null)
      : connect(target, callback)
}

/** Without the zone of a link-local IPv6 address, such as `%eth0.1`, which names an interface of this machine. */
export function withoutZone(address: string): string {
  return address.split('%', 1)[0] as string
}

/** A block of addresses: the network's address and the length of its prefix in bits. */
export type AddressBlock = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Whether an address is in one of the blocks; an IPv4 address mapped to IPv6, as dual-stack sockets report it, counts as IPv4. */
export function isWithin(address: string, blocks: readonly AddressBlock[]): boolean {
  const plain = withoutZone(address)
  if (!ipaddr.isValid(plain)) return false
  const parsed = ipaddr.process(plain)
  return blocks.some(([network, bits]) => parsed.kind() === network.kind() && parsed.match(network, bits))
}
