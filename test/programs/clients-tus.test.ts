/** Tests tus-js-client with the features that browser pages use. */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { Upload } from 'tus-js-client'
import { describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { createClientUpload, createUrlStorage, readUploadError } from '../support/tus-client.ts'
import { headUpload, readArtifact, readStatus, waitForState } from '../support/uploads.ts'

// Disk writes are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const MIB = 1024 ** 2

/** Returns the upload's path as an argument for the upload helpers. */
const placeOf = ({ url }: Upload) => ({ location: new URL(url as string).pathname })

/** Returns the artifact id from the response to a HEAD request. */
async function findId(app: Awaited<ReturnType<typeof startApp>>, upload: Upload): Promise<string> {
  return (await headUpload(app, placeOf(upload))).headers.get('x-artifact-id') as string
}

/** Splits bytes into a stream of chunks with different sizes, like a camera recording. */
function toUnevenStream(bytes: Buffer): Readable {
  function* pieces() {
    for (let at = 0, length = 1; at < bytes.length; at += length, length = ((length * 7) % 65_521) + 1)
      yield bytes.subarray(at, at + length)
  }
  return Readable.from(pieces(), { objectMode: false })
}

describe('a tus upload', () => {
  test.each([
    ['in one request', {}],
    ['in chunks', { chunkSize: MIB }],
    ['with its first bytes in the creation', { uploadDataDuringCreation: true }],
    ['with a chunk in the creation', { uploadDataDuringCreation: true, chunkSize: MIB }],
    ['with POST instead of PATCH', { overridePatchMethod: true, chunkSize: 2 * MIB }],
  ])('arrives unchanged (%s)', async (_how, options) => {
    const app = await startApp()
    const bytes = randomBytes(5 * MIB + 1)
    const { upload, done } = createClientUpload(bytes, app, options)
    upload.start()
    await done
    const id = await findId(app, upload)
    await waitForState(app, id, 'ready')
    expect((await readArtifact(app, id)).equals(bytes)).toBe(true)
  })

  // For a multiple of the chunk size, the client would not send the final request.
  test.each([1, 3 * MIB + 5])('of unknown length arrives unchanged (%i bytes)', async (size) => {
    const app = await startApp()
    const bytes = randomBytes(size)
    const options = { uploadLengthDeferred: true, chunkSize: MIB }
    const { upload, done } = createClientUpload(toUnevenStream(bytes), app, options)
    upload.start()
    await done
    const id = await findId(app, upload)
    await waitForState(app, id, 'ready')
    expect((await readArtifact(app, id)).equals(bytes)).toBe(true)
  })

  test('of zero bytes is complete after its creation', async () => {
    const app = await startApp()
    const { upload, done } = createClientUpload(Buffer.alloc(0), app)
    upload.start()
    await done
    await waitForState(app, await findId(app, upload), 'ready')
  })

  test('preserves Unicode names', async () => {
    const app = await startApp()
    const name = 'Прогулка 🐕 “à la plage”'
    const { upload, done } = createClientUpload(Buffer.from('x'), app, {
      metadata: { filename: 'évasion – 犬.mp4', name, filetype: 'video/mp4' },
    })
    upload.start()
    await done
    expect((await readStatus(app, await findId(app, upload))).name).toBe(name)
  })

  test('can be resumed by a new client with the same URL storage', async () => {
    const app = await startApp()
    const bytes = randomBytes(4 * MIB)
    const urlStorage = createUrlStorage()
    const before = createClientUpload(bytes, app, {
      urlStorage,
      chunkSize: MIB,
      onChunkComplete: (_size, accepted) => {
        if (accepted === 2 * MIB) void before.upload.abort().then(closed.resolve)
      },
    })
    const closed = Promise.withResolvers<void>()
    before.upload.start()
    await closed.promise

    const requests: string[] = []
    const after = createClientUpload(bytes, app, {
      urlStorage,
      onBeforeRequest: (request) => void requests.push(request.getMethod()),
    })
    const [previous] = await after.upload.findPreviousUploads()
    after.upload.resumeFromPreviousUpload(previous as NonNullable<typeof previous>)
    after.upload.start()
    await after.done
    expect(requests).toEqual(['HEAD', 'PATCH'])
    expect(after.upload.url).toBe(before.upload.url)
    const id = await findId(app, after.upload)
    await waitForState(app, id, 'ready')
    expect((await readArtifact(app, id)).equals(bytes)).toBe(true)
  })

  test('that was deleted is restarted by a client that tries to resume it', async () => {
    const app = await startApp()
    const urlStorage = createUrlStorage()
    const first = createClientUpload(Buffer.from('hello'), app, { urlStorage })
    first.upload.start()
    await first.done
    await Upload.terminate(first.upload.url as string, first.upload.options)

    const second = createClientUpload(Buffer.from('hello'), app, { urlStorage })
    const [previous] = await second.upload.findPreviousUploads()
    second.upload.resumeFromPreviousUpload(previous as NonNullable<typeof previous>)
    second.upload.start()
    await second.done
    expect(second.upload.url).not.toBe(first.upload.url)
    await waitForState(app, await findId(app, second.upload), 'ready')
  })
})

describe('a tus termination request', () => {
  test('deletes an unfinished upload', async () => {
    const app = await startApp()
    const ended = Promise.withResolvers<void>()
    let id = ''
    const { upload } = createClientUpload(randomBytes(4 * MIB), app, {
      chunkSize: MIB,
      onChunkComplete: (_size, accepted) => {
        if (accepted === 2 * MIB) void findAndEnd().then(ended.resolve, ended.reject)
      },
    })
    async function findAndEnd(): Promise<void> {
      id = await findId(app, upload)
      await upload.abort(true)
    }
    upload.start()
    await ended.promise
    expect(await readStatus(app, id)).toEqual({ artifactId: id, state: 'unknown', reason: 'deleted' })
    expect((await headUpload(app, placeOf(upload))).status).toBe(404)
  })
})

describe('a tus upload is rejected', () => {
  test.each([
    ['parallel uploads of parts', { parallelUploads: 2 }, 400, 'Upload-Concat'],
    ['metadata without a filename', { metadata: { name: 'x' } }, 400, 'filename'],
    ['an unknown kind', { metadata: { filename: 'x', kind: 'song' } }, 400, 'kind'],
    ['an invalid key', { headers: { Authorization: 'Bearer svc_none' } }, 401, 'key'],
  ])('for %s', async (_what, options, status, word) => {
    const app = await startApp()
    const requests: string[] = []
    const { upload, done } = createClientUpload(randomBytes(MIB), app, {
      ...options,
      onBeforeRequest: (request) => void requests.push(request.getMethod()),
    })
    upload.start()
    const refusal = readUploadError(await done.catch((error) => error))
    expect(refusal.status).toBe(status)
    expect(refusal.text?.toLowerCase()).toContain(word.toLowerCase())
    expect(new Set(requests)).toEqual(new Set(['POST']))
    const rows = await app.service.deps.db.selectFrom('artifacts').selectAll().execute()
    expect(rows).toEqual([])
  })

  test('for an upload that exceeds the size limit', async () => {
    const app = await startApp({ PARLEY_MAX_UPLOAD_BYTES: '1000' })
    const { upload, done } = createClientUpload(randomBytes(1001), app)
    upload.start()
    expect(readUploadError(await done.catch((error) => error)).status).toBe(413)
  })

  test('for a wrong checksum, and its bytes are deleted', async () => {
    const app = await startApp()
    const checksum = `sha256:${'0'.repeat(64)}`
    const { upload, done } = createClientUpload(randomBytes(MIB), app, {
      metadata: { filename: 'x.mp4', checksum },
    })
    upload.start()
    expect(readUploadError(await done.catch((error) => error)).status).toBe(422)
    expect((await headUpload(app, placeOf(upload))).status).toBe(404)
  })
})
