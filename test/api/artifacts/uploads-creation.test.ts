/** How uploads begin: alone or with their first bytes, under ids that nobody else has. Protocol: tus 1.0.0, Creation. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { createOtherKey } from '../../support/files.ts'
import {
  BODY_TYPE,
  beginUpload,
  callUpload,
  expectProtocol,
  postUpload,
  readArtifact,
  toMetadata,
  untilState,
  uploadWhole,
} from '../../support/uploads.ts'

const error = { ok: false, error: expect.any(String) }
const hello = Buffer.from('hello')

describe('POST', () => {
  test('201 with a relative Location, whatever the request says of hosts', async () => {
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

  test('201 at the address with a slash behind it', async () => {
    const app = await startApp()
    const headers = { 'Upload-Length': '3', 'Upload-Metadata': toMetadata({ filename: 'a' }) }
    expect((await callUpload(app, 'POST', '/upload/', headers)).status).toBe(201)
  })

  test('takes the id the client made, in lower case', async () => {
    const app = await startApp()
    const id = randomUUID()
    const { headers } = await postUpload(app, { metadata: { artifactId: id.toUpperCase() } })
    expect(headers.get('x-artifact-id')).toBe(id)
  })

  test('takes first bytes along, all of them or some', async () => {
    const app = await startApp()
    const some = await postUpload(app, { size: 10, body: hello })
    expect([some.status, some.headers.get('upload-offset')]).toEqual([201, '5'])
    expect(some.headers.has('upload-expires')).toBe(true)
    const all = await postUpload(app, { size: 5, body: hello })
    expect([all.status, all.headers.get('upload-offset')]).toEqual([201, '5'])
    expect(all.headers.has('upload-expires')).toBe(false)
    const id = all.headers.get('x-artifact-id') as string
    await untilState(app, id, 'ready')
    expect(await readArtifact(app, id)).toEqual(hello)
  })

  test('of an empty upload completes it', async () => {
    const app = await startApp()
    const { id } = await beginUpload(app, { size: 0 })
    await untilState(app, id, 'ready')
    expect(await readArtifact(app, id)).toEqual(Buffer.alloc(0))
  })

  const refused: [
    why: string,
    status: number,
    headers: Record<string, string>,
    size?: number | 'deferred',
  ][] = [
    ['no length and no promise of one', 400, { 'Upload-Length': '' }],
    ['a length that is none', 400, { 'Upload-Length': '-1' }],
    ['a length with a fraction', 400, { 'Upload-Length': '1.5' }],
    ['a length beyond all numbers', 400, { 'Upload-Length': '9'.repeat(20) }],
    ['a length and the promise of one', 400, { 'Upload-Defer-Length': '1' }],
    ['a promise that is none', 400, { 'Upload-Defer-Length': '0' }, 'deferred'],
    ['parts to be put together', 400, { 'Upload-Concat': 'partial' }],
    ['more than may be uploaded', 413, {}, 1_001],
  ]
  test.each(refused)('%s is %i', async (_why, status, headers, size = 10) => {
    const app = await startApp({ PARLEY_MAX_UPLOAD_BYTES: '1000' })
    const answer = await postUpload(app, { size, headers })
    expect(answer).toMatchObject({ status, body: error })
    expectProtocol(answer)
    expect(await app.service.deps.db.selectFrom('artifacts').selectAll().execute()).toEqual([])
  })

  test('413 for a body that is longer than the length', async () => {
    const app = await startApp()
    expect((await postUpload(app, { size: 4, body: hello })).status).toBe(413)
    expect(await app.service.deps.db.selectFrom('artifacts').selectAll().execute()).toEqual([])
  })

  test('415 for a body that is something else', async () => {
    const app = await startApp()
    const headers = { 'Content-Type': 'application/json' }
    expect((await postUpload(app, { size: 5, body: hello, headers })).status).toBe(415)
    const encoded = { 'Content-Type': BODY_TYPE, 'Content-Encoding': 'gzip' }
    expect((await postUpload(app, { size: 5, body: hello, headers: encoded })).status).toBe(415)
  })
})

describe('an id that is taken', () => {
  test('is 409 for everybody, whoever took it', async () => {
    const app = await startApp()
    const { id: artifactId } = await beginUpload(app)
    for (const key of [app.key, await createOtherKey(app)]) {
      const answer = await postUpload({ ...app, key }, { metadata: { artifactId } })
      expect(answer).toMatchObject({ status: 409, body: error })
    }
    const { id } = await uploadWhole(app, hello)
    expect((await postUpload(app, { metadata: { artifactId: id } })).status).toBe(409)
  })

  test('goes to exactly one of many that want it at once', async () => {
    const app = await startApp()
    const artifactId = randomUUID()
    const keys = [app.key, await createOtherKey(app)]
    const wanted = Array.from({ length: 20 }, (_, index) =>
      postUpload({ ...app, key: keys[index % 2] as string }, { metadata: { artifactId } }),
    )
    const statuses = (await Promise.all(wanted)).map(({ status }) => status)
    expect(statuses.sort()).toEqual([201, ...Array(19).fill(409)])
  })

  test('is free again once its upload was removed', async () => {
    const app = await startApp()
    const artifactId = randomUUID()
    const begun = await beginUpload(app, { metadata: { artifactId } })
    expect((await callUpload(app, 'DELETE', begun.location)).status).toBe(204)
    expect((await postUpload(app, { metadata: { artifactId } })).status).toBe(201)
  })
})
