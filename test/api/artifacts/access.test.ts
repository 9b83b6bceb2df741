/** Tests which callers may upload, open and delete an artifact. */
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { revokeParentKey } from '../../../src/identity/keys.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { postUpload, readArtifact, uploadWhole } from '../../support/uploads.ts'

const tenBytes = Buffer.from('0123456789')
/** A 1 × 1 pixel PNG image. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

async function reserve(app: TestApp, body: object = {}) {
  const answer = await app.call('POST', '/v1/artifacts', { body })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body
}

const upload = (app: TestApp, id: string, token: string, metadata = {}) =>
  postUpload(app, {
    size: tenBytes.length,
    body: tenBytes,
    metadata: { artifactId: id, ...metadata },
    headers: { Authorization: `Bearer ${token}` },
  })

describe('an artifact reservation', () => {
  test('contains an id, an upload URL and an expiry time, but does not create the artifact', async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const reserved = await reserve(app)
    expect(reserved).toMatchObject({ upload_url: '/upload', expires_at: 1_800_086_400 })
    const status = await app.call('GET', `/artifacts/${reserved.artifact_id}/status`)
    expect(status.body).toEqual({ artifactId: reserved.artifact_id, state: 'unknown' })
    const withPublicUrl = await startApp({ PARLEY_PUBLIC_URL: 'https://chat.example.org' })
    expect((await reserve(withPublicUrl)).upload_url).toBe('https://chat.example.org/upload')
  })

  test.each([
    ['expires_in', { expires_in: 0 }],
    ['expires_in', { expires_in: 2_592_001 }],
    ['kind', { kind: 'film' }],
    ['related_to', { related_to: 'x' }],
  ])('is rejected if %s is invalid: %j', async (param, body) => {
    const app = await startApp()
    expect(await app.call('POST', '/v1/artifacts', { body })).toMatchObject({
      status: 400,
      body: { error: { param } },
    })
  })
})

describe('an artifact token', () => {
  test('allows its holder to upload the artifact once (upload token) or to open it (view token)', async () => {
    const app = await startApp()
    const { artifact_id: id, upload_token, view_token } = await reserve(app)
    expect((await upload(app, id, upload_token)).status).toBe(201)
    const other = await postUpload({ ...app, key: upload_token as string }, { size: 11 })
    expect(other.status).toBe(409)
    await expect
      .poll(async () => (await app.call('GET', `/artifacts/${id}/status`, { key: view_token })).body.state)
      .toBe('ready')
    expect((await app.call('GET', `/artifacts/${id}`, { key: view_token })).text).toBe('0123456789')
    expect((await app.call('GET', `/artifacts/${id}?token=${view_token}`, { key: null })).text).toBe(
      '0123456789',
    )
  })

  test('is rejected for other artifacts and on other routes', async () => {
    const app = await startApp()
    const one = await reserve(app)
    const two = await reserve(app)
    const { id } = await uploadWhole(app, tenBytes)
    expect((await upload(app, two.artifact_id, one.upload_token)).status).toBe(403)
    expect((await upload(app, one.artifact_id, one.view_token)).status).toBe(403)
    for (const other of [id, two.artifact_id, crypto.randomUUID()]) {
      expect((await app.call('GET', `/artifacts/${other}/status`, { key: one.view_token })).status).toBe(403)
      expect((await app.call('GET', `/artifacts/${other}`, { key: one.view_token })).status).toBe(403)
    }
    expect((await app.call('GET', '/v1/models', { key: one.view_token })).status).toBe(401)
  })

  test('also allows its holder to upload (upload token) or open (view token) a related artifact', async () => {
    const app = await startApp()
    const { artifact_id: id, upload_token, view_token } = await reserve(app)
    const captions = crypto.randomUUID()
    const sent = await upload(app, captions, upload_token, { relatedTo: id, kind: 'captions' })
    expect(sent.status).toBe(201)
    expect((await app.call('GET', `/artifacts/${captions}/status`, { key: view_token })).status).toBe(200)
  })

  test.each([
    ['was modified', (token: string) => `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`],
    ['is truncated', (token: string) => token.slice(0, 40)],
  ])('is rejected with 401 when it %s', async (_what, change) => {
    const app = await startApp()
    const { artifact_id: id, view_token } = await reserve(app)
    expect((await app.call('GET', `/artifacts/${id}/status`, { key: change(view_token) })).status).toBe(401)
  })

  test('is valid until it expires or its parent key is revoked', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const short = await reserve(app, { expires_in: 60 })
    const long = await reserve(app, { expires_in: 600 })
    const ask = ({ artifact_id, view_token }: typeof short) =>
      app.call('GET', `/artifacts/${artifact_id}/status`, { key: view_token })
    clock.advance(60)
    expect((await ask(short)).status).toBe(401)
    expect((await ask(long)).status).toBe(200)
    await revokeParentKey(app.service.deps, serviceActor, app.key.slice(4, 16))
    expect((await ask(long)).status).toBe(401)
  })

  test('is accepted in the URL of GET requests but not of DELETE requests, and is never logged', async () => {
    const { log, lines } = createLineLog()
    const app = await startApp({}, { log })
    const { artifact_id: id, view_token } = await reserve(app)
    expect((await app.call('DELETE', `/artifacts/${id}?token=${view_token}`, { key: null })).status).toBe(401)
    expect((await app.call('GET', `/artifacts/${id}?token=${view_token}`, { key: null })).status).toBe(404)
    expect(lines.join('\n')).not.toContain(view_token.slice(-20))
  })

  test.each(['/artifacts/', '/upload/', '/'])(
    'is never logged in full, even in the path: %s',
    async (before) => {
      const { log, lines } = createLineLog()
      const app = await startApp({}, { log })
      const { view_token } = await reserve(app)
      expect((await app.call('GET', before + view_token)).status).toBeGreaterThanOrEqual(400)
      expect(lines.join('\n')).toContain(view_token.slice(0, 12))
      expect(lines.join('\n')).not.toContain(view_token.slice(-20))
    },
  )
})

describe('GET /artifacts/{id}', () => {
  test('serves an unconverted artifact as a download with its media type', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, PNG, { metadata: { filename: 'ü.png', kind: 'video' } })
    const { status, headers } = await app.call('GET', `/artifacts/${id}`)
    expect(status).toBe(200)
    expect((await readArtifact(app, id)).equals(PNG)).toBe(true)
    expect(headers.get('content-length')).toBe(`${PNG.length}`)
    expect(headers.get('content-type')).toBe('image/png')
    expect(headers.get('content-disposition')).toMatch(/^attachment; .*filename\*=UTF-8''%C3%BC\.png/)
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox; frame-ancestors 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  })

  test('supports range requests, conditional requests and HEAD', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    const path = `/artifacts/${id}`
    const part = await app.call('GET', path, { headers: { Range: 'bytes=2-4' } })
    expect([part.status, part.text, part.headers.get('content-range')]).toEqual([206, '234', 'bytes 2-4/10'])
    expect((await app.call('GET', path, { headers: { Range: 'bytes=10-' } })).status).toBe(416)
    const head = await app.call('HEAD', path)
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', '10'])
    const tag = head.headers.get('etag') as string
    expect((await app.call('GET', path, { headers: { 'If-None-Match': tag } })).status).toBe(304)
  })

  test("returns 404 for an incomplete upload, a missing poster and another tenant's artifact", async () => {
    const app = await startApp()
    const begun = await postUpload(app)
    expect((await app.call('GET', `/artifacts/${begun.headers.get('x-artifact-id')}`)).status).toBe(404)
    const { id } = await uploadWhole(app, tenBytes)
    expect((await app.call('GET', `/artifacts/${id}/poster`)).status).toBe(404)
    const key = await createTenant(app)
    for (const method of ['GET', 'DELETE'])
      expect((await app.call(method, `/artifacts/${id}`, { key })).status).toBe(404)
    expect((await app.call('GET', `/artifacts/${id}`)).status).toBe(200)
  })

  test('returns 404 after the artifact is deleted', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    expect((await app.call('DELETE', `/artifacts/${id}`)).status).toBe(200)
    expect((await app.call('DELETE', `/artifacts/${id}`)).status).toBe(404)
    expect((await app.call('GET', `/artifacts/${id}`)).status).toBe(404)
  })
})

test('GET /capabilities returns the upload limits without authentication', async () => {
  const app = await startApp()
  const { status, body } = await app.call('GET', '/capabilities', { key: null })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    protocolVersion: 2,
    protocolRevision: '2.3',
    kinds: ['video', 'project', 'captions', 'thumbnail'],
    limits: { maxUploadBytes: 5 * 1024 ** 3 },
  })
})

test('requests with an upload token are rate-limited per artifact, separately from the parent key', async () => {
  const app = await startApp({ PARLEY_RATE_LIMIT_UPLOAD_TOKEN: '5' }, { clock: createFakeClock() })
  const { artifact_id: id, upload_token: key } = await reserve(app)
  const { upload_token: other, artifact_id: otherId } = await reserve(app)
  expect((await upload(app, id, key)).status).toBe(201)
  const remove = (artifact: string, token: string) =>
    app.call('DELETE', `/artifacts/${artifact}`, { key: token })
  const statuses: number[] = []
  for (let count = 0; count < 5; count++) statuses.push((await remove(id, key)).status)
  expect(statuses).toEqual([200, 404, 404, 404, 429])
  const limited = await remove(id, key)
  expect(limited.headers.get('retry-after')).not.toBeNull()
  expect((await upload(app, otherId, other)).status).toBe(201)
  expect((await remove(otherId, app.key)).status).toBe(200)
})
