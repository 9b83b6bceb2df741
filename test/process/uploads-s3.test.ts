/** Tests uploads through the service to an s3rver bucket. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { startAppOnDisk, type TestApp } from '../support/app.ts'
import { MIB } from '../support/s3-store.ts'
import { startS3rver } from '../support/s3rver.ts'
import {
  type Creation,
  checksumOf,
  createUpload,
  type Headers,
  patchUpload,
  readArtifact,
  readOffset,
  uploadWhole,
  waitForState,
} from '../support/uploads.ts'

// Waiting for the object store is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Uploads random bytes in requests of these sizes (in bytes), and checks the resulting artifact. */
async function uploadInParts(app: TestApp, sizes: readonly number[], creation: Creation = {}): Promise<void> {
  const bytes = randomBytes(sizes.reduce((sum, size) => sum + size, 0))
  const metadata = { checksum: checksumOf(bytes) }
  const begun = await createUpload(app, { size: bytes.length, metadata, ...creation })
  let offset = 0
  for (const size of sizes) {
    expect(await readOffset(app, begun)).toBe(offset)
    const piece = bytes.subarray(offset, offset + size)
    offset += size
    const isLast = offset === bytes.length
    const late: Headers = creation.size === 'deferred' && isLast ? { 'Upload-Length': String(offset) } : {}
    expect((await patchUpload(app, begun, offset - size, piece, late)).status).toBe(204)
  }
  await waitForState(app, begun.id, 'ready')
  expect((await readArtifact(app, begun.id)).equals(bytes)).toBe(true)
}

describe('with s3rver as the object store', () => {
  test.each([
    ['one byte', [1]],
    ['three requests of different sizes', [10, 300_001, 2 * MIB]],
    ['many requests of odd sizes', [9 * MIB + 1, 3, 7 * MIB, 17 * MIB - 5, 1]],
    ['requests of exactly one or two parts', [8 * MIB, 16 * MIB]],
  ])('an upload sent as %s is stored unchanged', async (_what, sizes) => {
    await uploadInParts(await startAppOnDisk(await startS3rver()), sizes)
  })

  test('an upload with a deferred length and an empty upload are stored unchanged', async () => {
    const app = await startAppOnDisk(await startS3rver())
    await uploadInParts(app, [9 * MIB, 5 * MIB], { size: 'deferred' })
    const empty = await uploadWhole(app, Buffer.alloc(0))
    expect(await readArtifact(app, empty.id)).toHaveLength(0)
  })
})
