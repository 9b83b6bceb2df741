/** Tests the HTML and headers of an artifact's status page in every state. */
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { revokeParentKey } from '../../../src/identity/keys.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { behindProxy, claimKey } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { createUpload, uploadWhole } from '../../support/uploads.ts'
import { reserveArtifact, setArtifact, setConverted, statusPagePath } from '../../support/watch.ts'

const tenBytes = Buffer.from('0123456789')
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

async function readPage(app: TestApp, id: string): Promise<string> {
  const { status, text } = await app.call('GET', `/artifacts/${id}/watch`)
  expect(status).toBe(200)
  return text
}

const refreshOf = (page: string) =>
  /<noscript><meta http-equiv="refresh" content="(\d+)"><\/noscript>/.exec(page)?.[1]

describe('the status page', () => {
  test('is not cached and does not load anything from other origins', async () => {
    const app = await startApp()
    const { status, headers, text } = await app.call('GET', statusPagePath(await reserveArtifact(app)), {
      key: null,
    })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(headers.get('content-security-policy')).toBe(POLICY)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(text).not.toMatch(/https?:|<style|style=|\son\w+=/)
    expect([...text.matchAll(/<script[^>]*>(.*)<\/script>/g)].map(([, code]) => code)).toEqual([''])
  })

  test('links to assets whose URLs contain a content hash', async () => {
    const app = await startApp()
    const page = await readPage(app, crypto.randomUUID())
    const own = [...page.matchAll(/(?:src|href)="\.\.\/(status-[0-9a-f]{16}\.\w+)"/g)]
    const shared = [...page.matchAll(/href="(\/design\/(?:style|mark)-[0-9a-f]{16}\.\w+)"/g)]
    const paths = [...own.map(([, name]) => `/artifacts/${name}`), ...shared.map(([, path]) => String(path))]
    expect(paths).toHaveLength(4)
    for (const path of paths) {
      const { status, headers } = await app.call('GET', path, { key: null })
      expect(status).toBe(200)
      expect(headers.get('content-type')).toMatch(/^(text\/(css|javascript); charset=utf-8|image\/svg\+xml)$/)
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect((await app.call('POST', path, { key: null })).status).toBe(405)
    }
  })

  test('supports GET and HEAD, and returns 405 for POST', async () => {
    const app = await startApp()
    const path = statusPagePath(await reserveArtifact(app))
    const head = await app.call('HEAD', path, { key: null })
    const got = await app.call('GET', path, { key: null })
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(got.text)))
    const posted = await app.call('POST', path, { key: null })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    expect((await app.call('GET', path.replace('/watch', '/watch/x'), { key: null })).status).toBe(404)
  })

  test('shows each state before `ready` without JavaScript, and reloads itself', async () => {
    const app = await startApp()
    const { artifact_id: id } = await reserveArtifact(app)
    const before = await readPage(app, id)
    expect(before).toContain('Nothing here yet')
    expect(refreshOf(before)).toBe('10')
    await createUpload(app, {
      body: tenBytes.subarray(0, 4),
      metadata: { artifactId: id, name: 'Überblick' },
    })
    const uploading = await readPage(app, id)
    expect(uploading).toContain('<progress max="1" value="0.4" aria-label="Uploading">')
    expect(uploading).toContain('<span id="percent">40</span> % of 10 bytes')
    expect(uploading).toContain('<title>40 % · Überblick</title>')
    expect(refreshOf(uploading)).toBe('3')
    await setArtifact(app, id, { state: 'processing', received_bytes: 10, progress_permille: 256 })
    const processing = await readPage(app, id)
    expect(processing).toContain('<progress max="1" value="0.256" aria-label="Preparing">')
    expect(refreshOf(processing)).toBe('3')
  })

  test('shows the number of received bytes for an upload of unknown length', async () => {
    const app = await startApp()
    const { id } = await createUpload(app, { size: 'deferred', body: tenBytes })
    const page = await readPage(app, id)
    expect(page).toContain('<progress max="1" aria-label="Uploading">')
    expect(page).toContain('10 bytes so far')
  })

  test('offers an unconverted artifact as a download and explains why', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    await setArtifact(app, id, { conversion_result: 'original', conversion_reason: 'It is <odd>.' })
    const page = await readPage(app, id)
    expect(page).toContain(`<a class="download" href="../${id}" download>Download</a>`)
    expect(page).toContain('The file is available as uploaded.')
    expect(page).toContain('It is &#60;odd&#62;.')
    expect(page).not.toMatch(/<video|<img|<pre/)
    expect(refreshOf(page)).toBeUndefined()
  })

  test('displays only safe media types that match the detected type', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    await setConverted(app, id, 'video/mp4')
    expect(await readPage(app, id)).toContain(`<video controls playsinline preload="metadata"`)
    expect(await readPage(app, id)).not.toContain('poster=')
    await setConverted(app, id, 'video/mp4', { poster_blob: 'x', poster_bytes: 1 })
    expect(await readPage(app, id)).toContain('poster="poster"')
    await setConverted(app, id, 'image/webp')
    expect(await readPage(app, id)).toContain(`<img src="../${id}" alt="Video">`)
    for (const unlike of [{ sniffed_type: 'text/html' }, { conversion_reason: 'It is damaged.' }]) {
      await setConverted(app, id, 'image/webp', unlike)
      expect(await readPage(app, id)).not.toMatch(/<video|<img|<pre/)
    }
    await setConverted(app, id, 'image/svg+xml')
    expect(await readPage(app, id)).not.toMatch(/<video|<img|<pre/)
  })

  test('shows captions as text and truncates long ones', async () => {
    const app = await startApp()
    const short = Buffer.from('WEBVTT\n\n00:01.000 --> 00:02.000\n<b>Tom</b> &amp; "Jerry"\n')
    const { id } = await uploadWhole(app, short, { metadata: { filename: 'a.vtt', kind: 'captions' } })
    await setConverted(app, id, 'text/vtt')
    expect(await readPage(app, id)).toContain('&#60;b&#62;Tom&#60;/b&#62; &#38;amp; &#34;Jerry&#34;\n</pre>')
    const long = await uploadWhole(app, Buffer.from(`WEBVTT\n\nN${'é'.repeat(40_000)}`))
    await setConverted(app, long.id, 'text/vtt')
    const page = await readPage(app, long.id)
    const [, text = ''] = /<pre[^>]*>([^<]*)<\/pre>/.exec(page) ?? []
    expect(text).toMatch(/^WEBVTT\n\nNé+…$/)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536 + 3)
  })
})

describe("an artifact's name on the status page", () => {
  test.each([
    ['<img src=x onerror=alert(1)>', '<bdi>&#60;img src=x onerror=alert(1)&#62;</bdi>'],
    ['"><script>alert(1)</script>', '<bdi>&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;</bdi>'],
    ['\u202egpj.exe', '<bdi>\u202egpj.exe</bdi>'],
    ['🂡'.repeat(512), `<bdi>${'🂡'.repeat(512)}</bdi>`],
    ["$& '", '<bdi>$&#38; &#39;</bdi>'],
  ])('is shown as plain text: %s', async (name, written) => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes, { metadata: { name } })
    await setConverted(app, id, 'image/png')
    const page = await readPage(app, id)
    expect(page).toContain(written)
    expect(page.match(/<(img|script)/g)).toEqual(['<script', '<img'])
    expect(/<title>.*<\/title>/.exec(page)?.[0]).not.toMatch(/\p{Bidi_Control}/u)
  })
})

describe('the status page without access', () => {
  test.each([
    ['no token', 401, (path: string) => path.split('?')[0] as string],
    ['a modified token', 401, (path: string) => path.slice(0, -3)],
    ['HTML as the token', 401, (path: string) => path.replace(/=.*/, '=%3Cimg%20src=x%3E')],
    [
      'a token for another artifact',
      403,
      (path: string) => path.replace(/[0-9a-f-]{36}/, crypto.randomUUID()),
    ],
    ['an invalid id', 400, (path: string) => path.replace(/[0-9a-f-]{36}/, '%3Cimg%3E')],
  ])('returns an error page for %s', async (_what, expected, change) => {
    const app = await startApp()
    const { status, headers, text } = await app.call(
      'GET',
      change(statusPagePath(await reserveArtifact(app))),
      { key: null },
    )
    expect(status).toBe(expected)
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(headers.get('content-security-policy')).toBe(POLICY)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(text).toMatch(/<h1 data-piece="heading">(Incomplete|Invalid|Wrong) link</)
    expect(text).not.toContain('<img')
    expect(refreshOf(text)).toBeUndefined()
  })

  test('returns 401 after the token expires or its parent key is revoked', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const [short, long] = [
      await reserveArtifact(app, { expires_in: 60 }),
      await reserveArtifact(app, { expires_in: 600 }),
    ]
    clock.advance(60)
    expect((await app.call('GET', statusPagePath(short), { key: null })).status).toBe(401)
    expect((await app.call('GET', statusPagePath(long), { key: null })).status).toBe(200)
    await revokeParentKey(app.service.deps, serviceActor, app.key.slice(4, 16))
    expect((await app.call('GET', statusPagePath(long), { key: null })).status).toBe(401)
  })

  test('returns 429 after too many requests without a token, and reloads itself no earlier than Retry-After', async () => {
    const app = await startApp({ PARLEY_RATE_LIMIT_AUTH_FAILURES: '1' })
    const path = `/artifacts/${crypto.randomUUID()}/watch`
    expect((await app.call('GET', path, { key: null })).status).toBe(401)
    const { status, headers, text } = await app.call('GET', path, { key: null })
    expect([status, text.includes('Too many requests')]).toEqual([429, true])
    expect(Number(refreshOf(text))).toBeGreaterThanOrEqual(Number(headers.get('retry-after')))
  })

  test("does not reveal that another tenant's artifact exists", async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes, { metadata: { name: 'Mine' } })
    const { status, text } = await app.call('GET', `/artifacts/${id}/watch`, { key: await createTenant(app) })
    expect([status, text.includes('Nothing here yet'), text.includes('Mine')]).toEqual([200, true, false])
  })
})

test("a console user can open only their own artifacts' status pages, without a token", async () => {
  const app = await startApp(behindProxy)
  const { id } = await uploadWhole(app, tenBytes, { metadata: { name: 'Mine' } })
  await claimKey(app, 'ada@example.org', app.key)
  const openPage = (email: string) =>
    app.call('GET', `/artifacts/${id}/watch`, { key: null, headers: { 'X-Email': email } })
  const own = await openPage('ada@example.org')
  expect([own.status, own.text.includes('Mine'), own.text.includes('token')]).toEqual([200, true, false])
  expect((await openPage('bob@example.org')).text).toContain('Nothing here yet')
})

test("a status page's token is never logged", async () => {
  const { log, lines } = createLineLog()
  const app = await startApp({}, { log })
  const reserved = await reserveArtifact(app)
  for (const path of [statusPagePath(reserved), statusPagePath(reserved).replace('/watch', '/watch/x')])
    await app.call('GET', path, { key: null })
  expect(lines.join('\n')).not.toContain(reserved.view_token.slice(-20))
})
