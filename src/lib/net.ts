/** Checks network addresses, and prevents connections to cloud metadata services. */
import { lookup as lookupName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'

/** Cloud metadata services outside the link-local ranges; they return the instance's credentials. */
const metadataAddresses = new Set(['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200', '192.0.0.192'])

/**
 * Returns whether a host is a link-local or metadata address in any notation; always false for host names.
 */
export function isForbiddenAddress(host: string): boolean {
  const address = withoutZone(host.replace(/^\[(.*)\]$/, '$1'))
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return parsed.range() === 'linkLocal' || metadataAddresses.has(parsed.toString())
}

/**
 * Returns whether a host is an address outside of the public Internet, such as loopback, a private network or
 * a metadata address; always false for host names.
 */
export function isPrivateAddress(host: string): boolean {
  const address = withoutZone(host.replace(/^\[(.*)\]$/, '$1'))
  if (!ipaddr.isValid(address)) return false
  return isForbiddenAddress(address) || ipaddr.process(address).range() !== 'unicast'
}

/** The addresses that may be connected to: all, or only those on the public Internet. */
export type Reach = 'any' | 'public'

/**
 * Checks the addresses that a host name resolves to at each connection, because DNS responses change. Callers
 * must check literal addresses themselves.
 */
export function guardLookup(
  lookup: LookupFunction = lookupName,
  isRejected = isForbiddenAddress,
  reject: (hostname: string, address: string) => Error = rejectAddress,
): LookupFunction {
  return (hostname, lookupOptions, callback) => {
    lookup(hostname, lookupOptions, (error, found, family) => {
      if (error !== null) return callback(error, found, family)
      const addresses = typeof found === 'string' ? [found] : found.map((each) => each.address)
      const rejected = addresses.find(isRejected)
      if (rejected !== undefined) return callback(reject(hostname, rejected), found, family)
      callback(null, found, family)
    })
  }
}

export function forbiddenAddress(hostname: string): Error {
  return new Error(`${hostname} is a link-local or metadata address; connections to those are not allowed.`)
}

function rejectAddress(hostname: string, address: string): Error {
  if (isForbiddenAddress(address)) return forbiddenAddress(hostname)
  return new Error(`${hostname} is not a public address; PARLEY_CONSOLE_PROVIDERS=public allows only those.`)
}

/**
 * Never connects to link-local or metadata addresses. Connects to loopback and private networks, where model
 * and MCP servers run, unless `reach` is `public`.
 */
export function createGuardedConnector(
  connectMs: number,
  lookup?: LookupFunction,
  reach: Reach = 'any',
): buildConnector.connector {
  const isRejected = reach === 'public' ? isPrivateAddress : isForbiddenAddress
  const connect = buildConnector({
    timeout: connectMs,
    allowH2: false,
    lookup: guardLookup(lookup, isRejected),
  })
  return (target, callback) =>
    isRejected(target.hostname)
      ? callback(rejectAddress(target.hostname, target.hostname), null)
      : connect(target, callback)
}

/**
 * Connects only to exempt hosts and to addresses that `isRejected` does not reject. Checks the addresses of a
 * host name for each connection.
 */
export function createCheckedConnector(
  connectMs: number,
  {
    isRejected,
    isExempt,
    lookup = lookupName,
  }: {
    readonly isRejected: (address: string) => boolean
    /** Returns whether all addresses of a host are accepted. */
    readonly isExempt: (hostname: string) => boolean
    readonly lookup?: LookupFunction | undefined
  },
): buildConnector.connector {
  const connectTo = (using: LookupFunction) =>
    buildConnector({ timeout: connectMs, allowH2: false, lookup: using })
  const guarded = connectTo(guardLookup(lookup, isRejected, notPublic))
  const unguarded = connectTo(lookup)
  return (target, callback) => {
    if (isExempt(target.hostname)) return unguarded(target, callback)
    if (isRejected(target.hostname)) return callback(notPublic(target.hostname), null)
    return guarded(target, callback)
  }
}

/** The error has a code, because callers report it differently from a failed connection. */
function notPublic(hostname: string): Error {
  return Object.assign(new Error(`${hostname} is not a public address.`), { code: ADDRESS_NOT_PUBLIC })
}

export const ADDRESS_NOT_PUBLIC = 'ADDRESS_NOT_PUBLIC'

/** Removes an IPv6 address's zone, such as `%eth0`. */
export function withoutZone(address: string): string {
  return address.split('%', 1)[0] as string
}

/** The network's address and its prefix length in bits. */
export type AddressBlock = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Returns whether a block contains the address; treats an IPv4-mapped IPv6 address as IPv4. */
export function isWithin(address: string, blocks: readonly AddressBlock[]): boolean {
  const plain = withoutZone(address)
  if (!ipaddr.isValid(plain)) return false
  const parsed = ipaddr.process(plain)
  return blocks.some(([network, bits]) => parsed.kind() === network.kind() && parsed.match(network, bits))
}
