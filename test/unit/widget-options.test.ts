/** Tests how the widget reads server addresses in its options. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { readOptions } from '../../widget/host/read-options.ts'

afterEach(() => void vi.unstubAllGlobals())

/** Reads `widgetUrl` on a page; returns the address, or `rejected`. */
function readOn(page: string, widgetUrl: string): string | undefined {
  vi.stubGlobal('location', new URL(page))
  const rejected: string[] = []
  const options = readOptions({ widgetUrl }, (name) => void rejected.push(name))
  return rejected.includes('widgetUrl') ? 'rejected' : options.widgetUrl
}

describe('an address in `widgetUrl`', () => {
  test.each([
    'http://chat.example.org',
    'http://localhost.example.org',
    'http://localhosts',
    'http://127.example.org',
    'http://192.168.0.1',
  ])('is rejected on an HTTPS page, because browsers block it (%s)', (address) => {
    expect(readOn('https://www.example.org/shop', address)).toBe('rejected')
  })

  test.each([
    'http://localhost:3000',
    'http://127.0.0.1:3000',
    'http://127.1.2.3/',
    'http://[::1]:3000',
    'http://parley.localhost',
    'https://chat.example.org',
  ])('is accepted on an HTTPS page if browsers allow it (%s)', (address) => {
    expect(readOn('https://www.example.org/shop', address)).toBe(new URL(address).href)
  })

  test('may use HTTP on an HTTP page', () => {
    expect(readOn('http://www.example.org/', 'http://chat.example.org')).toBe('http://chat.example.org/')
  })
})
