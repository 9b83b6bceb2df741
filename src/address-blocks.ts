/** Blocks of network addresses, and who lies within them. */
import ipaddr from 'ipaddr.js'

/** A block of addresses: the network's address and the length of its prefix in bits. */
export type AddressBlock = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Whether an address lies in one of the blocks; IPv4 is IPv4, also where the socket is a dual-stack one. */
export function isWithin(address: string, blocks: readonly AddressBlock[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return blocks.some(([network, bits]) => parsed.kind() === network.kind() && parsed.match(network, bits))
}
