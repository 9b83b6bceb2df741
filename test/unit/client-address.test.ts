/** Tests how link-local IPv6 addresses with a zone are handled. */
import type { IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import { clientAddressOf } from '../../src/http/request.ts'
import { isForbiddenAddress, isWithin } from '../../src/lib/net.ts'
import { addressGroup } from '../../src/operations/access.ts'

const zones = ['', '%eth0', '%eth0.1', '%br-lan', '%wg_home', '%3']
const linkLocal = [ipaddr.IPv6.parse('fe80::'), 10] as const

function requestFrom(remoteAddress: string, forwarded?: string): IncomingMessage {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage
}

describe.each(zones)('a link-local address with the zone "%s"', (zone) => {
  const address = `fe80::1:2${zone}`

  test("is used without the zone as the client's address and for its rate limit", () => {
    const client = clientAddressOf(requestFrom(address), [])
    expect(client).toBe('fe80::1:2')
    expect(addressGroup(client)).toBe('65152:0:0:0')
  })

  test('can be the socket address of a trusted proxy', () => {
    expect(isWithin(address, [linkLocal])).toBe(true)
    expect(clientAddressOf(requestFrom(address, '203.0.113.9'), [linkLocal])).toBe('203.0.113.9')
  })

  test('can be forwarded in X-Forwarded-For by a trusted proxy', () => {
    const proxy = [ipaddr.IPv4.parse('10.0.0.0'), 8] as const
    expect(clientAddressOf(requestFrom('10.0.0.1', address), [proxy])).toBe('fe80::1:2')
  })

  test('is rejected as the address of a model provider or an S3 endpoint', () => {
    expect(isForbiddenAddress(address)).toBe(true)
  })
})
