/**
 * Tests that uploads store the right bytes, even if request bodies are slow, interrupted or of the wrong
 * length.
 */
import { randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { toChunkStream } from '../../support/files.ts'
import { eventually, makeFolder } from '../../support/process.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'
import {
  BODY_TYPE,
  type CreatedUpload,
  checksumOf,
  createUpload,
  headUpload,
  listArtifactBytes,
  patchUpload,
  postUpload,
  readArtifact,
  readOffset,
  readStatus,
  uploadWhole,
  waitForState,
} from '../../support/uploads.ts'

// Disk writes may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const MIB = 1024 ** 2
const error = { ok: false, error: expect.any(String) }

async function startWithDataDir(env: Readonly<Record<string, string>> = {}) {
  const dataDir = join(await makeFolder(), 'data')
  return { app: await startApp({ ...env, PARLEY_DATA_DIR: dataDir }), dataDir }
}

/** Sends only the headers of a PATCH request. */
async function openPatch(
  app: TestApp,
  { location }: CreatedUpload,
  offset: number,
  length: string,
): Promise<RawConnection> {
  const connection = await RawConnection.open(app)
  const head = [
    'Host: x',
    `Authorization: Bearer ${app.key}`,
    'Tus-Resumable: 1.0.0',
    `Upload-Offset: ${offset}`,
  ]
  connection.send(toRequest(`PATCH ${location}`, [...head, `Content-Type: ${BODY_TYPE}`, length]))
  return connection
}

/** Waits until `sizeBytes` bytes of the upload are on disk, even if its offset does not include them yet. */
async function untilWritten(dataDir: string, sizeBytes: number): Promise<void> {
  const read = async () => {
    const [name] = (await listArtifactBytes(dataDir)).growing
    return name === undefined ? 0 : (await stat(join(dataDir, 'artifacts', 'growing', name))).size
  }
  expect(await eventually(read, sizeBytes)).toBe(sizeBytes)
}

describe('the upload API', () => {
  test('accepts an upload that arrives one byte at a time', async () => {
    const { app, dataDir } = await startWithDataDir({
      PARLEY_UPLOAD_IDLE_SECONDS: '5',
      PARLEY_BODY_SECONDS: '0.001',
    })
    const begun = await createUpload(app, { size: 5 })
    const connection = await openPatch(app, begun, 0, 'Content-Length: 5')
    for (const [index, letter] of [...'drops'].entries()) {
      connection.send(letter)
      if (index < 4) await untilWritten(dataDir, index + 1)
    }
    await connection.receives(/^HTTP\/1\.1 204 .*Upload-Offset: 5/s)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('drops')
  })

  test.each([
    ['resets the connection', (connection: RawConnection) => connection.reset()],
    ['half-closes the connection', (connection: RawConnection) => connection.endSending()],
  ])('stores the bytes it received before the client %s mid-request', async (_how, leave) => {
    const { app, dataDir } = await startWithDataDir()
    const begun = await createUpload(app, { size: 10 })
    const connection = await openPatch(app, begun, 0, 'Content-Length: 10')
    connection.send('0123456')
    await untilWritten(dataDir, 7)
    leave(connection)
    expect(await eventually(() => readOffset(app, begun), 7)).toBe(7)
    expect((await patchUpload(app, begun, 7, Buffer.from('789'))).status).toBe(204)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('0123456789')
  })

  test('completes an upload whose client disconnects after the last byte', async () => {
    const { app, dataDir } = await startWithDataDir()
    const begun = await createUpload(app, { size: 5 })
    const connection = await openPatch(app, begun, 0, 'Transfer-Encoding: chunked')
    connection.send('5\r\nhello\r\n')
    await untilWritten(dataDir, 5)
    connection.reset()
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('hello')
  })

  test('stores the received bytes and returns 408 when the client stalls', async () => {
    const { app } = await startWithDataDir({ PARLEY_UPLOAD_IDLE_SECONDS: '0.3' })
    const begun = await createUpload(app, { size: 10 })
    const connection = await openPatch(app, begun, 0, 'Content-Length: 10')
    connection.send('01234')
    expect(await connection.receives(/^HTTP\/1\.1 408 .*"ok":false/s)).toContain('Connection: close')
    expect(await readOffset(app, begun)).toBe(5)
  })

  test('rejects a request with 413 before reading its body if Content-Length exceeds the remaining bytes', async () => {
    const { app, dataDir } = await startWithDataDir()
    const begun = await createUpload(app, { size: 10, body: Buffer.from('01234') })
    const connection = await openPatch(app, begun, 5, 'Content-Length: 6')
    await connection.receives(/^HTTP\/1\.1 413 .*"ok":false/s)
    expect(await readOffset(app, begun)).toBe(5)
    await untilWritten(dataDir, 5)
  })

  test('rejects a chunked body with 413 if it exceeds the remaining bytes', async () => {
    const { app } = await startWithDataDir()
    const begun = await createUpload(app, { size: 10, body: Buffer.from('01234') })
    const answer = await patchUpload(app, begun, 5, toChunkStream(Buffer.from('567890'), 2))
    expect(answer).toMatchObject({ status: 413, body: error })
    expect(await readOffset(app, begun)).toBe(5)
    expect((await readStatus(app, begun.id)).state).toBe('uploading')
    expect((await patchUpload(app, begun, 5, Buffer.from('56789'))).status).toBe(204)
  })

  test('accepts an upload in many small requests', async () => {
    const { app } = await startWithDataDir()
    const begun = await createUpload(app, { size: 4 })
    for (const [offset, letter] of [...'rest'].entries())
      expect((await patchUpload(app, begun, offset, Buffer.from(letter))).status).toBe(204)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('rest')
  })

  test('ignores an empty PATCH, even when the upload is complete', async () => {
    const { app } = await startWithDataDir()
    const begun = await createUpload(app, { size: 5, body: Buffer.from('hel') })
    const nothing = Buffer.alloc(0)
    expect((await patchUpload(app, begun, 3, nothing)).headers.get('upload-offset')).toBe('3')
    await patchUpload(app, begun, 3, Buffer.from('lo'))
    await waitForState(app, begun.id, 'ready')
    const before = await app.service.deps.db.selectFrom('artifacts').selectAll().execute()
    for (let times = 0; times < 2; times++) {
      const answer = await patchUpload(app, begun, 5, nothing)
      expect([answer.status, answer.headers.get('upload-offset')]).toEqual([204, '5'])
    }
    expect(await app.service.deps.db.selectFrom('artifacts').selectAll().execute()).toEqual(before)
    expect((await patchUpload(app, begun, 5, Buffer.from('!'))).status).toBe(413)
  })

  test('rejects a chunked body after the last byte with 413 unless the body is empty', async () => {
    const { app } = await startWithDataDir()
    const begun = await uploadWhole(app, Buffer.from('hello'))
    expect((await patchUpload(app, begun, 5, toChunkStream(Buffer.from('!')))).status).toBe(413)
    expect((await patchUpload(app, begun, 5, toChunkStream(Buffer.alloc(0)))).status).toBe(204)
    expect((await readArtifact(app, begun.id)).toString()).toBe('hello')
  })

  test('rejects the last chunk with 409 if it is sent again', async () => {
    const { app } = await startWithDataDir()
    const begun = await createUpload(app, { size: 5, body: Buffer.from('hel') })
    expect((await patchUpload(app, begun, 3, Buffer.from('lo'))).status).toBe(204)
    expect((await patchUpload(app, begun, 3, Buffer.from('lo'))).status).toBe(409)
    expect(await readOffset(app, begun)).toBe(5)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('hello')
  })
})

describe('a deferred upload length', () => {
  test('is absent until the client declares it and cannot change afterwards', async () => {
    const { app } = await startWithDataDir()
    const begun = await createUpload(app, { size: 'deferred' })
    await patchUpload(app, begun, 0, toChunkStream(Buffer.from('hel')))
    const { headers } = await headUpload(app, begun)
    expect([headers.get('upload-defer-length'), headers.get('upload-length')]).toEqual(['1', null])
    expect(await readStatus(app, begun.id)).not.toHaveProperty('size')
    const declared = { 'Upload-Length': '5' }
    expect((await patchUpload(app, begun, 3, Buffer.from('l'), declared)).status).toBe(204)
    expect((await headUpload(app, begun)).headers.get('upload-length')).toBe('5')
    const changed = { 'Upload-Length': '6' }
    expect((await patchUpload(app, begun, 4, Buffer.from('o'), changed)).status).toBe(400)
    expect((await patchUpload(app, begun, 4, Buffer.from('o'), declared)).status).toBe(204)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('hello')
  })

  test('completes the upload if it is declared after all bytes have arrived', async () => {
    const { app } = await startWithDataDir()
    const begun = await createUpload(app, { size: 'deferred', body: Buffer.from('hello') })
    expect((await patchUpload(app, begun, 5, Buffer.alloc(0), { 'Upload-Length': '4' })).status).toBe(400)
    expect((await patchUpload(app, begun, 5, Buffer.alloc(0), { 'Upload-Length': '5' })).status).toBe(204)
    await waitForState(app, begun.id, 'ready')
  })

  test('must not exceed the maximum upload size', async () => {
    const { app } = await startWithDataDir({ PARLEY_MAX_UPLOAD_BYTES: '10' })
    const begun = await createUpload(app, { size: 'deferred', body: Buffer.from('hello') })
    expect((await patchUpload(app, begun, 5, toChunkStream(Buffer.alloc(6)))).status).toBe(413)
    expect((await patchUpload(app, begun, 5, Buffer.alloc(1), { 'Upload-Length': '11' })).status).toBe(413)
    expect(await readOffset(app, begun)).toBe(5)
  })
})

describe("an upload's checksum", () => {
  const bytes = randomBytes(10 * MIB)

  test('is accepted if it matches the bytes, whether they arrive in one or several requests', async () => {
    const { app, dataDir } = await startWithDataDir()
    const metadata = { checksum: checksumOf(bytes) }
    const size = bytes.length
    const whole = await createUpload(app, { size, metadata, body: bytes })
    const parts = await createUpload(app, { size, metadata, body: bytes.subarray(0, 9 * MIB) })
    expect((await patchUpload(app, parts, 9 * MIB, bytes.subarray(9 * MIB))).status).toBe(204)
    for (const { id } of [whole, parts]) {
      await waitForState(app, id, 'ready')
      expect((await readArtifact(app, id)).equals(bytes)).toBe(true)
    }
    expect((await listArtifactBytes(dataDir)).growing).toEqual([])
  })

  test.each([1, 2])(
    'is rejected with 422 if it does not match, and the bytes are deleted (requests: %i)',
    async (parts) => {
      const { app, dataDir } = await startWithDataDir()
      const metadata = { checksum: checksumOf(bytes.subarray(1)) }
      const half = bytes.length / 2
      const creation = { size: bytes.length, metadata }
      const answer =
        parts === 1
          ? await postUpload(app, { ...creation, body: bytes })
          : await patchUpload(
              app,
              await createUpload(app, { ...creation, body: bytes.subarray(0, half) }),
              half,
              bytes.subarray(half),
            )
      expect(answer).toMatchObject({ status: 422, body: error })
      expect(answer.headers.has('location')).toBe(false)
      expect(await listArtifactBytes(dataDir)).toEqual({ kept: [], growing: [] })
      expect(await app.service.deps.db.selectFrom('artifacts').selectAll().execute()).toEqual([])
    },
  )
})
