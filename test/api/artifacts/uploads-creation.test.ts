/** Tests how uploads are created, with or without initial bytes (tus 1.0.0, Creation). */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import {
  BODY_TYPE,
  callUpload,
  createUpload,
  expectProtocol,
  patchUpload,
  postUpload,
  readArtifact,
  toMetadata,
  uploadWhole,
  waitForState,
} from '../../support/uploads.ts'

const error = { ok: false, error: expect.any(String) }
const hello = Buffer.from('hello')

describe('POST /upload', () => {
  test('returns 201 with a relative Location despite forwarded host headers', async () => {
    const app = await startApp()
    const headers = { 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https, http' }
    const answer = await postUpload(app, { headers })
    expect(answer.status).toBe(201)
    expectProtocol(answer)
    expect(answer.headers.get('location')).toMatch(/^\/upload\/[0-9A-Za-z]{32}$/)
    expect(answer.headers.get('x-artifact-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(answer.headers.has('upload-offset')).toBe(false)
    expect(Date.parse(answer.headers.get('upload-expires') as string)).toBeGreaterThan(0)
    const id = answer.headers.get('x-artifact-id') as string
    expect(answer.headers.get('location')).not.toContain(id)
  })

  test('accepts a trailing slash in the URL', async () => {
    const app = await startApp()
    const headers = { 'Upload-Length': '3', 'Upload-Metadata': toMetadata({ filename: 'a' }) }
    expect((await callUpload(app, 'POST', '/upload/', headers)).status).toBe(201)
  })

  test('accepts an id that the client chooses and converts it to lower case', async () => {
    const app = await startApp()
    const id = randomUUID()
    const { headers } = await postUpload(app, { metadata: { artifactId: id.toUpperCase() } })
    expect(headers.get('x-artifact-id')).toBe(id)
  })

  test('accepts some or all of the bytes in the same request', async () => {
    const app = await startApp()
    const some = await postUpload(app, { size: 10, body: hello })
    expect([some.status, some.headers.get('upload-offset')]).toEqual([201, '5'])
    expect(some.headers.has('upload-expires')).toBe(true)
    const all = await postUpload(app, { size: 5, body: hello })
    expect([all.status, all.headers.get('upload-offset')]).toEqual([201, '5'])
    expect(all.headers.has('upload-expires')).toBe(false)
    const id = all.headers.get('x-artifact-id') as string
    await waitForState(app, id, 'ready')
    expect(await readArtifact(app, id)).toEqual(hello)
  })

  test('completes an empty upload immediately', async () => {
    const app = await startApp()
    const { id } = await createUpload(app, { size: 0 })
    await waitForState(app, id, 'ready')
    expect(await readArtifact(app, id)).toEqual(Buffer.alloc(0))
  })

  const rejected: [
    why: string,
    status: number,
    headers: Record<string, string>,
    size?: number | 'deferred',
  ][] = [
    ['a missing length', 400, { 'Upload-Length': '' }],
    ['a negative length', 400, { 'Upload-Length': '-1' }],
    ['a fractional length', 400, { 'Upload-Length': '1.5' }],
    ['a length of 20 digits', 400, { 'Upload-Length': '9'.repeat(20) }],
    ['both a length and a deferred length', 400, { 'Upload-Defer-Length': '1' }],
    ['an invalid Upload-Defer-Length', 400, { 'Upload-Defer-Length': '0' }, 'deferred'],
    ['a partial upload to concatenate', 400, { 'Upload-Concat': 'partial' }],
    ['a length over the limit', 413, {}, 1_001],
  ]
  test.each(rejected)('rejects %s with %i', async (_why, status, headers, size = 10) => {
    const app = await startApp({ PARLEY_MAX_UPLOAD_BYTES: '1000' })
    const answer = await postUpload(app, { size, headers })
    expect(answer).toMatchObject({ status, body: error })
    expectProtocol(answer)
    expect(await app.service.deps.db.selectFrom('artifacts').selectAll().execute()).toEqual([])
  })

  test('returns 413 for a body longer than Upload-Length', async () => {
    const app = await startApp()
    expect((await postUpload(app, { size: 4, body: hello })).status).toBe(413)
    expect(await app.service.deps.db.selectFrom('artifacts').selectAll().execute()).toEqual([])
  })

  test('returns 415 for an unsupported content type or encoding', async () => {
    const app = await startApp()
    const headers = { 'Content-Type': 'application/json' }
    expect((await postUpload(app, { size: 5, body: hello, headers })).status).toBe(415)
    const encoded = { 'Content-Type': BODY_TYPE, 'Content-Encoding': 'gzip' }
    expect((await postUpload(app, { size: 5, body: hello, headers: encoded })).status).toBe(415)
  })
})

describe('an artifact id chosen by the client', () => {
  test('is rejected with 409 for any tenant while it is in use', async () => {
    const app = await startApp()
    const { id: artifactId } = await createUpload(app)
    for (const key of [app.key, await createTenant(app)]) {
      const answer = await postUpload({ ...app, key }, { metadata: { artifactId } })
      expect(answer).toMatchObject({ status: 409, body: error })
    }
    const { id } = await uploadWhole(app, hello)
    expect((await postUpload(app, { metadata: { artifactId: id } })).status).toBe(409)
  })

  test('is assigned to only one of two tenants that request it concurrently', async () => {
    const app = await startApp()
    const artifactId = randomUUID()
    const keys = [app.key, await createTenant(app)]
    const requests = Array.from({ length: 20 }, (_, index) =>
      postUpload({ ...app, key: keys[index % 2] as string }, { metadata: { artifactId } }),
    )
    const answers = await Promise.all(requests)
    // A repeated request from the same tenant returns the existing upload.
    expect(answers.map(({ status }) => status).sort()).toEqual([
      ...Array(10).fill(201),
      ...Array(10).fill(409),
    ])
    const locations = answers
      .filter(({ status }) => status === 201)
      .map(({ headers }) => headers.get('location'))
    expect(new Set(locations).size).toBe(1)
    expect(await app.service.deps.db.selectFrom('artifacts').select('id').execute()).toHaveLength(1)
  })

  test('is assigned to only one of several concurrent requests for different uploads', async () => {
    const app = await startApp()
    const artifactId = randomUUID()
    const requests = Array.from({ length: 20 }, (_, index) =>
      postUpload(app, { size: 10 + index, metadata: { artifactId } }),
    )
    const statuses = (await Promise.all(requests)).map(({ status }) => status)
    expect(statuses.sort()).toEqual([201, ...Array(19).fill(409)])
  })

  test('is available again after its upload is deleted', async () => {
    const app = await startApp()
    const artifactId = randomUUID()
    const begun = await createUpload(app, { metadata: { artifactId } })
    expect((await callUpload(app, 'DELETE', begun.location)).status).toBe(204)
    expect((await postUpload(app, { metadata: { artifactId } })).status).toBe(201)
  })
})

describe('repeating the creation of an upload', () => {
  const creation = { size: 5, metadata: { artifactId: randomUUID() } }

  test('returns the existing upload and its offset', async () => {
    const app = await startApp()
    const begun = await createUpload(app, creation)
    await patchUpload(app, begun, 0, hello.subarray(0, 2))
    const { status, headers } = await postUpload(app, creation)
    expect(status).toBe(201)
    expect(headers.get('location')).toBe(begun.location)
    expect(headers.get('x-artifact-id')).toBe(begun.id)
    expect(headers.get('upload-offset')).toBe('2')
    expect((await patchUpload(app, begun, 2, hello.subarray(2))).status).toBe(204)
  })

  test('returns the completed upload for ten minutes if the request contains all bytes', async () => {
    const clock = createFakeClock(Math.floor(Date.now() / 1000))
    const app = await startApp({}, { clock })
    const begun = await uploadWhole(app, hello, creation)
    const again = await postUpload(app, { ...creation, body: hello })
    expect(again.status).toBe(201)
    expect(again.headers.get('location')).toBe(begun.location)
    expect(again.headers.get('upload-offset')).toBe('5')
    clock.advance(601)
    expect((await postUpload(app, { ...creation, body: hello })).status).toBe(409)
  })

  test('returns the upload that belongs to the token if the request has a token', async () => {
    const app = await startApp()
    const { upload_token: key } = (await app.call('POST', '/v1/artifacts', { body: {} })).body
    const begun = await createUpload({ ...app, key }, { size: 5 })
    const again = await postUpload({ ...app, key }, { size: 5 })
    expect([again.status, again.headers.get('location')]).toEqual([201, begun.location])
  })

  test.each([
    ['another length', { ...creation, size: 6 }],
    ['a deferred length', { ...creation, size: 'deferred' as const }],
    ['other metadata', { ...creation, metadata: { ...creation.metadata, name: 'other' } }],
  ])('returns 409 for %s', async (_what, other) => {
    const app = await startApp()
    await createUpload(app, creation)
    expect((await postUpload(app, other)).status).toBe(409)
  })
})
