/** Tests uploads that exceed the free disk space or the storage quota. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openFolder } from '../../../src/storage/folder.ts'
import { toResumableStore } from '../../../src/storage/local.ts'
import { startApp } from '../../support/app.ts'
import { filePart, purpose, toChunkStream, upload } from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'
import {
  callUpload,
  createUpload,
  patchUpload,
  postUpload,
  readArtifact,
  readOffset,
  waitForState,
} from '../../support/uploads.ts'

const GIB = 1024 ** 3
const MIB = 1024 ** 2
const error = { ok: false, error: expect.any(String) }

/** Starts a service on a simulated disk; the test sets its free space. */
async function startWithDisk() {
  const disk = { freeBytes: 900 * GIB, totalBytes: 1_000 * GIB }
  const folder = await openFolder(join(await makeFolder(), 'artifacts'), async () => disk)
  return { disk, app: await startApp({}, { artifactStore: toResumableStore(folder, true) }) }
}

describe('a server with a full disk', () => {
  test('returns 507 for a new upload and does not store it', async () => {
    const { app, disk } = await startWithDisk()
    disk.freeBytes = 10 * GIB
    expect(await postUpload(app)).toMatchObject({ status: 507, body: error })
    expect(await app.service.deps.db.selectFrom('artifacts').selectAll().execute()).toEqual([])
    disk.freeBytes = 900 * GIB
    expect((await postUpload(app)).status).toBe(201)
  })

  test('returns 507 for an upload in progress, which can be resumed later', async () => {
    const { app, disk } = await startWithDisk()
    const begun = await createUpload(app, { size: 10, body: Buffer.from('hello') })
    disk.freeBytes = 10 * GIB
    expect((await patchUpload(app, begun, 5, Buffer.from('hello'))).status).toBe(507)
    expect(await readOffset(app, begun)).toBe(5)
    disk.freeBytes = 900 * GIB
    expect((await patchUpload(app, begun, 5, Buffer.from('hello'))).status).toBe(204)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('hellohello')
  })

  test('returns 507 if the disk fills up mid-request, but keeps the bytes that it already stored', async () => {
    const { app, disk } = await startWithDisk()
    const bytes = randomBytes(100 * MIB)
    const begun = await createUpload(app, { size: bytes.length })
    const answer = patchUpload(app, begun, 0, toChunkStream(bytes, MIB))
    disk.freeBytes = 10 * GIB
    expect((await answer).status).toBe(507)
    const offset = await readOffset(app, begun)
    expect(offset).toBeLessThan(bytes.length)
    disk.freeBytes = 900 * GIB
    expect((await patchUpload(app, begun, offset, bytes.subarray(offset))).status).toBe(204)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).equals(bytes)).toBe(true)
  })
})

describe("a parent key's storage quota", () => {
  const quota = { PARLEY_STORAGE_QUOTA_BYTES: '1000' }

  test('applies to files and artifacts together, including declared but unsent bytes', async () => {
    const app = await startApp(quota)
    const begun = await createUpload(app, { size: 600 })
    expect((await upload(app, [filePart(Buffer.alloc(500)), purpose])).status).toBe(413)
    expect((await upload(app, [filePart(Buffer.alloc(400)), purpose])).status).toBe(200)
    const rejected = await postUpload(app, { size: 1 })
    expect(rejected).toMatchObject({ status: 413, body: error })
    expect((await patchUpload(app, begun, 0, Buffer.alloc(600))).status).toBe(204)
    await callUpload(app, 'DELETE', begun.location)
    expect((await postUpload(app, { size: 600 })).status).toBe(201)
  })

  test('limits an upload whose length is not declared', async () => {
    const app = await startApp(quota)
    const begun = await createUpload(app, { size: 'deferred' })
    expect((await patchUpload(app, begun, 0, toChunkStream(Buffer.alloc(700)))).status).toBe(204)
    const more = await patchUpload(app, begun, 700, toChunkStream(Buffer.alloc(301)))
    expect(more.body.error).toContain('storage quota of 1000 bytes is exceeded')
    expect((await postUpload(app, { size: 301 })).status).toBe(413)
    const declared = { 'Upload-Length': '1001' }
    expect((await patchUpload(app, begun, 700, Buffer.alloc(0), declared)).status).toBe(413)
    expect(await readOffset(app, begun)).toBe(700)
    const last = await patchUpload(app, begun, 700, Buffer.alloc(300), { 'Upload-Length': '1000' })
    expect(last.status).toBe(204)
  })

  test('limits concurrent uploads whose lengths are not declared', async () => {
    const app = await startApp({ PARLEY_STORAGE_QUOTA_BYTES: String(10 * MIB) })
    const bytes = Buffer.alloc(9 * MIB)
    const uploads = await Promise.all(
      Array.from({ length: 5 }, () => createUpload(app, { size: 'deferred' })),
    )
    const statuses = await Promise.all(
      uploads.map(async (begun) => (await patchUpload(app, begun, 0, toChunkStream(bytes))).status),
    )
    expect(statuses.filter((status) => status === 204).length).toBeLessThanOrEqual(1)
    expect(statuses.filter((status) => status !== 204 && status !== 413)).toEqual([])
    const offsets = await Promise.all(uploads.map((begun) => readOffset(app, begun)))
    expect(offsets.reduce((sum, offset) => sum + offset, 0)).toBeLessThanOrEqual(10 * MIB)
  })

  test('counts only the received bytes of an upload whose length is not declared', async () => {
    const app = await startApp(quota)
    const begun = await createUpload(app, { size: 'deferred' })
    expect((await patchUpload(app, begun, 0, toChunkStream(Buffer.alloc(100)))).status).toBe(204)
    expect((await postUpload(app, { size: 900 })).status).toBe(201)
    expect((await postUpload(app, { size: 1 })).status).toBe(413)
  })
})
