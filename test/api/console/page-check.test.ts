/** Tests the check that reports whether a page can be shown in a frame of the console. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy } from '../../support/console.ts'
import { startPages } from '../../support/page-server.ts'
import { callProcedure } from '../../support/rpc.ts'
import { allowLoopback } from '../../support/webhook-receiver.ts'

const parentOrigin = 'https://console.example.com'

async function check(app: TestApp, url: string, origin = parentOrigin) {
  const input = { url, parent_origin: origin }
  const { status, body, text } = await callProcedure(
    app,
    'manager.checkPage',
    input,
    asUser('ada@example.org'),
  )
  if (status !== 200) throw new Error(text)
  return body.result.data.json
}

const startChecker = (env: Record<string, string> = allowLoopback) => startApp({ ...behindProxy, ...env })

describe('the page check', () => {
  test.each<[string, Record<string, string | string[]>, string | null]>([
    ['without X-Frame-Options and frame-ancestors', {}, null],
    ['with X-Frame-Options: DENY', { 'X-Frame-Options': 'DENY' }, 'X-Frame-Options: DENY'],
    ['with X-Frame-Options: SAMEORIGIN', { 'X-Frame-Options': 'sameorigin' }, 'X-Frame-Options: sameorigin'],
    ['with an unknown X-Frame-Options', { 'X-Frame-Options': 'ALLOW-FROM https://example.com' }, null],
    [
      'with contradictory X-Frame-Options',
      { 'X-Frame-Options': ['ALLOWALL', 'DENY'] },
      'X-Frame-Options: ALLOWALL, DENY',
    ],
    [
      'with frame-ancestors for another site',
      { 'Content-Security-Policy': "default-src 'self'; frame-ancestors 'self' https://shop.example.com" },
      "Content-Security-Policy: frame-ancestors 'self' https://shop.example.com",
    ],
    [
      'with an empty frame-ancestors',
      { 'Content-Security-Policy': 'frame-ancestors' },
      'Content-Security-Policy: frame-ancestors',
    ],
    [
      'with frame-ancestors for the console on another port',
      { 'Content-Security-Policy': 'frame-ancestors https://console.example.com:8443' },
      'Content-Security-Policy: frame-ancestors https://console.example.com:8443',
    ],
    [
      'with a second policy that forbids all frames',
      { 'Content-Security-Policy': ['frame-ancestors *', "frame-ancestors 'none'"] },
      "Content-Security-Policy: frame-ancestors 'none'",
    ],
    ['with frame-ancestors for all sites', { 'Content-Security-Policy': 'frame-ancestors *' }, null],
    ['with frame-ancestors for a scheme', { 'Content-Security-Policy': 'frame-ancestors https:' }, null],
    [
      'with frame-ancestors for a wildcard host',
      { 'Content-Security-Policy': 'frame-ancestors *.example.com' },
      null,
    ],
    [
      'with frame-ancestors that override X-Frame-Options',
      { 'Content-Security-Policy': `frame-ancestors ${parentOrigin}`, 'X-Frame-Options': 'DENY' },
      null,
    ],
    ['with a report-only policy', { 'Content-Security-Policy-Report-Only': "frame-ancestors 'none'" }, null],
  ])(
    'reports whether a page may be shown in a frame and, if not, which rule forbids it: a page %s',
    async (_page, headers, rule) => {
      const pages = await startPages(
        (_request, response) => void response.writeHead(200, headers).end('<p>Hi'),
      )
      const app = await startChecker()
      expect(await check(app, pages)).toEqual({
        outcome: rule === null ? 'shown' : 'refused',
        rule,
        status: 200,
      })
    },
  )

  test("allows SAMEORIGIN and 'self' if the page and the console have the same origin", async () => {
    const pages = await startPages((request, response) => {
      const headers =
        request.url === '/options'
          ? { 'X-Frame-Options': 'SAMEORIGIN' }
          : { 'Content-Security-Policy': "frame-ancestors 'self'" }
      response.writeHead(200, headers).end()
    })
    const app = await startChecker()
    expect((await check(app, `${pages}/options`, pages)).outcome).toBe('shown')
    expect((await check(app, `${pages}/policy`, pages)).outcome).toBe('shown')
  })

  test('follows redirects and reports the rule of the last page', async () => {
    const pages = await startPages((request, response) => {
      if (request.url === '/') response.writeHead(301, { Location: '/shop#top' }).end()
      else response.writeHead(200, { 'X-Frame-Options': 'DENY' }).end()
    })
    const app = await startChecker()
    expect(await check(app, `${pages}/#start`)).toEqual({
      outcome: 'refused',
      rule: 'X-Frame-Options: DENY',
      status: 200,
    })
  })

  test('does not follow a redirect to an address that the operator has not allowed', async () => {
    const asked: string[] = []
    const pages = await startPages((request, response) => {
      asked.push(String(request.headers.host))
      const { port } = new URL(`http://${request.headers.host}`)
      response.writeHead(302, { Location: `http://localhost:${port}/` }).end()
    })
    const app = await startChecker()
    expect((await check(app, pages)).outcome).toBe('unchecked')
    expect(asked).toEqual([new URL(pages).host])
  })

  test('reports a page that redirects endlessly as unreachable', async () => {
    let count = 0
    const pages = await startPages((_request, response) => {
      count += 1
      response.writeHead(302, { Location: '/' }).end()
    })
    const app = await startChecker()
    expect(await check(app, pages)).toEqual({ outcome: 'unreachable', rule: null, status: null })
    expect(count).toBe(6)
  })

  test('reports the status of an error page', async () => {
    const pages = await startPages((_request, response) => void response.writeHead(404).end('Not found'))
    const app = await startChecker()
    expect(await check(app, pages)).toEqual({ outcome: 'failed', rule: null, status: 404 })
  })

  test('reports a server that drops the connection as unreachable', async () => {
    const pages = await startPages((request) => void request.socket.destroy())
    const app = await startChecker()
    expect(await check(app, pages)).toEqual({ outcome: 'unreachable', rule: null, status: null })
  })

  test('does not request a private address that the operator has not allowed', async () => {
    let count = 0
    const pages = await startPages((_request, response) => {
      count += 1
      response.end()
    })
    const app = await startChecker({})
    const { port } = new URL(pages)
    for (const url of [
      pages,
      `https://127.0.0.1:${port}`,
      `https://localhost:${port}`,
      'https://169.254.169.254',
    ])
      expect((await check(app, url)).outcome).toBe('unchecked')
    expect(count).toBe(0)
  })

  test('rejects API keys and URLs that do not start with https:// or http://', async () => {
    const app = await startChecker()
    const input = { url: 'https://example.com', parent_origin: parentOrigin }
    expect((await callProcedure(app, 'manager.checkPage', input)).status).toBe(403)
    const wrong = { ...input, url: 'file:///etc/passwd' }
    const { status, text } = await callProcedure(app, 'manager.checkPage', wrong, asUser('ada@example.org'))
    expect(status).toBe(400)
    expect(text).toContain('url: must be a URL that starts with https:// or http://')
  })
})
