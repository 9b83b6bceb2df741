/** Tests the `reason` in an unknown artifact's status, and the SHA-256 of uploads. */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { digestFile } from '../../../src/artifacts/jobs/digest.ts'
import { createArtifactSweeper } from '../../../src/artifacts/maintenance.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import {
  createUpload,
  patchUpload,
  postUpload,
  readStatus,
  uploadWhole,
  waitForState,
} from '../../support/uploads.ts'

const DAY = 86_400
const tenBytes = Buffer.from('0123456789')
const sha256 = createHash('sha256').update(tenBytes).digest('hex')

const sweep = (app: TestApp) => createArtifactSweeper(app.service.deps).run()

async function reserve(app: TestApp) {
  const { body } = await app.call('POST', '/v1/artifacts', { body: { expires_in: 30 * DAY } })
  return body as { artifact_id: string; upload_token: string; view_token: string }
}

describe("the reason in an unknown artifact's status", () => {
  test('is `deleted` after a deletion, even when it is read with a view token', async () => {
    const app = await startApp()
    const { artifact_id: id, view_token: key } = await reserve(app)
    await uploadWhole(app, tenBytes, { metadata: { artifactId: id } })
    await app.call('DELETE', `/artifacts/${id}`)
    const { status, body } = await app.call('GET', `/artifacts/${id}/status`, { key })
    expect([status, body]).toEqual([200, { artifactId: id, state: 'unknown', reason: 'deleted' }])
  })

  test('is `expired` once the upload expires, both before and after the sweeper deletes it', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const { id } = await createUpload(app, { size: 10 })
    clock.advance(2 * DAY)
    expect(await readStatus(app, id)).toEqual({ artifactId: id, state: 'unknown', reason: 'expired' })
    await sweep(app)
    expect(await app.service.deps.db.selectFrom('artifacts').select('id').execute()).toEqual([])
    expect(await readStatus(app, id)).toEqual({ artifactId: id, state: 'unknown', reason: 'expired' })
  })

  test('is `checksum_mismatch` after an upload with a wrong checksum', async () => {
    const app = await startApp()
    const metadata = { checksum: `sha256:${'0'.repeat(64)}` }
    const upload = await createUpload(app, { size: 10, metadata })
    expect((await patchUpload(app, upload, 0, tenBytes)).status).not.toBe(204)
    expect(await readStatus(app, upload.id)).toMatchObject({ state: 'unknown', reason: 'checksum_mismatch' })
  })

  test('can be read with a view token of the related artifact, but not by another tenant', async () => {
    const app = await startApp()
    const video = await reserve(app)
    const { id } = await uploadWhole(app, tenBytes, { metadata: { relatedTo: video.artifact_id } })
    await app.call('DELETE', `/artifacts/${id}`)
    const read = (key: string) => app.call('GET', `/artifacts/${id}/status`, { key })
    expect((await read(video.view_token)).body.reason).toBe('deleted')
    expect((await read((await reserve(app)).view_token)).status).toBe(403)
    expect((await read(await createTenant(app))).body).toEqual({ artifactId: id, state: 'unknown' })
  })

  test("can be read with the artifact's upload token, which cannot read any other status", async () => {
    const app = await startApp()
    const { artifact_id: id, upload_token: key } = await reserve(app)
    const read = () => app.call('GET', `/artifacts/${id}/status`, { key })
    expect((await read()).status).toBe(403)
    await uploadWhole(app, tenBytes, { metadata: { artifactId: id } })
    expect((await read()).status).toBe(403)
    await app.call('DELETE', `/artifacts/${id}`)
    const { status, body } = await read()
    expect([status, body]).toEqual([200, { artifactId: id, state: 'unknown', reason: 'deleted' }])
    const other = await reserve(app)
    expect((await app.call('GET', `/artifacts/${id}/status`, { key: other.upload_token })).status).toBe(403)
  })

  test('disappears when an upload with the same id starts', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    await app.call('DELETE', `/artifacts/${id}`)
    expect((await postUpload(app, { size: 10, metadata: { artifactId: id } })).status).toBe(201)
    expect(await readStatus(app, id)).not.toHaveProperty('reason')
  })

  test('is deleted after 30 days, when all tokens have expired', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const { id } = await uploadWhole(app, tenBytes)
    await app.call('DELETE', `/artifacts/${id}`)
    clock.advance(30 * DAY - 1)
    await sweep(app)
    expect(await readStatus(app, id)).toHaveProperty('reason')
    clock.advance(2)
    await sweep(app)
    expect(await readStatus(app, id)).not.toHaveProperty('reason')
  })
})

describe("an upload's SHA-256", () => {
  test('appears in the status once the server has verified the checksum', async () => {
    const app = await startApp()
    const upload = await createUpload(app, { size: 10, metadata: { checksum: `sha256:${sha256}` } })
    expect(await readStatus(app, upload.id)).not.toHaveProperty('sha256')
    await patchUpload(app, upload, 0, tenBytes)
    expect(await readStatus(app, upload.id)).toMatchObject({ sha256 })
  })

  test('is computed even if the client does not send a checksum', async () => {
    const app = await startApp()
    const upload = await createUpload(app, { size: 10 })
    await patchUpload(app, upload, 0, tenBytes.subarray(0, 4))
    await patchUpload(app, upload, 4, tenBytes.subarray(4))
    await waitForState(app, upload.id, 'ready')
    expect(await readStatus(app, upload.id)).toMatchObject({ sha256 })
  })
})

describe('the thread that computes a SHA-256', () => {
  test('returns the digest of a file larger than one read', async () => {
    const path = join(await makeFolder(), 'large')
    const bytes = Buffer.alloc(3 * 1024 ** 2 + 1, 'abc')
    await writeFile(path, bytes)
    const digest = createHash('sha256').update(bytes).digest('hex')
    expect(await digestFile(path, new AbortController().signal)).toBe(digest)
  })

  test('fails if the file does not exist or the job is cancelled', async () => {
    await expect(digestFile('/nowhere', new AbortController().signal)).rejects.toThrow('ENOENT')
    const cancelled = new AbortController()
    const digest = digestFile('/dev/zero', cancelled.signal)
    cancelled.abort(new Error('cancelled'))
    await expect(digest).rejects.toThrow('cancelled')
  })
})
