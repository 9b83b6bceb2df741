/** Tests artifacts that the service stores in a bucket of a scripted S3 server. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { createArtifactSweeper } from '../../../src/artifacts/maintenance.ts'
import { startAppOnDisk } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { toChunkStream } from '../../support/files.ts'
import { eventually } from '../../support/process.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'
import { listResumable } from '../../support/resumable-rows.ts'
import { S3Server } from '../../support/s3-server.ts'
import { MIB } from '../../support/s3-store.ts'
import {
  BODY_TYPE,
  callUpload,
  checksumOf,
  createUpload,
  headUpload,
  patchUpload,
  postUpload,
  readArtifact,
  readOffset,
  readStatus,
  uploadWhole,
  waitForState,
} from '../../support/uploads.ts'

// Store operations may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const DAY = 86_400
const HOUR = 3_600

async function startScripted() {
  const server = await S3Server.start()
  const clock = createFakeClock(Math.floor(Date.now() / 1000))
  const app = await startAppOnDisk(server.environment, { clock })
  const { run: sweep } = createArtifactSweeper(app.service.deps)
  return { server, clock, app, sweep }
}

describe('an artifact in a bucket', () => {
  test('is read only in the requested range, and not at all for HEAD and 304 responses', async () => {
    const { app, server } = await startScripted()
    const bytes = randomBytes(20 * MIB)
    const { id } = await uploadWhole(app, bytes)
    const ask = (method: string, headers: Readonly<Record<string, string>> = {}) =>
      app.fetch(`${app.url}/artifacts/${id}`, {
        method,
        headers: { Authorization: `Bearer ${app.key}`, ...headers },
      })
    const range = { Range: `bytes=${9 * MIB}-${9 * MIB + 99}` }
    const part = await ask('GET', range)
    expect([part.status, part.headers.get('content-length')]).toEqual([206, '100'])
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(9 * MIB, 9 * MIB + 100))).toBe(true)
    const read = server.calls.findLast(({ operation }) => operation === 'GetObject')
    expect(read?.headers.range).toBe(range.Range.toLowerCase())
    const before = server.calls.length
    expect((await ask('HEAD')).headers.get('content-length')).toBe(String(bytes.length))
    const known = { 'If-None-Match': part.headers.get('etag') ?? '' }
    expect((await ask('GET', known)).status).toBe(304)
    expect((await ask('HEAD', known)).status).toBe(304)
    expect(server.calls).toHaveLength(before)
  })

  test('is deleted with all its objects', async () => {
    const { app, server } = await startScripted()
    const ready = await uploadWhole(app, randomBytes(9 * MIB))
    const growing = await createUpload(app, { size: 40 * MIB, body: randomBytes(9 * MIB) })
    expect(listResumable(server)).toMatchObject({ uploads: 1 })
    expect((await callUpload(app, 'DELETE', growing.location)).status).toBe(204)
    expect((await app.call('DELETE', `/artifacts/${ready.id}`)).status).toBe(200)
    expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
    expect(server.listBlobs()).toEqual([])
  })

  test.each([
    ['one request', [9 * MIB]],
    ['several requests', [9 * MIB, MIB]],
  ])('sent in %s is deleted if its checksum does not match', async (_how, sizes) => {
    const { app, server } = await startScripted()
    const size = sizes.reduce((sum, one) => sum + one, 0)
    const metadata = { checksum: checksumOf(Buffer.from('another')) }
    const begun = await createUpload(app, { size, metadata })
    let offset = 0
    let status = 0
    for (const one of sizes) {
      status = (await patchUpload(app, begun, offset, randomBytes(one))).status
      offset += one
    }
    expect(status).toBe(422)
    expect((await readStatus(app, begun.id)).state).toBe('unknown')
    expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
    expect(server.listBlobs()).toEqual([])
  })
})

describe('an unfinished upload in a bucket', () => {
  test('is deleted from the bucket when it expires, but not before', async () => {
    const { app, server, clock, sweep } = await startScripted()
    const begun = await createUpload(app, { size: 40 * MIB, body: randomBytes(9 * MIB) })
    await expect.poll(() => listResumable(server).trailingParts).toHaveLength(1)
    const before = listResumable(server)
    clock.advance(DAY - 1)
    await sweep()
    expect(listResumable(server)).toEqual(before)
    expect(await readOffset(app, begun)).toBe(9 * MIB)
    clock.advance(1)
    await sweep()
    expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
    expect(await app.service.deps.db.selectFrom('artifacts').selectAll().execute()).toEqual([])
  })

  test('is deleted by the sweeper if the bucket rejected the deletion, as are leftover parts of a finished upload', async () => {
    const { app, server, clock, sweep } = await startScripted()
    const bytes = randomBytes(9 * MIB)
    const ready = await uploadWhole(app, bytes)
    const [name = ''] = server.listBlobs()
    server.uploads.set('late', { key: `artifacts/${name}`, begunMs: Date.now(), parts: new Map() })
    const begun = await createUpload(app, { size: 40 * MIB, body: bytes })
    await expect.poll(() => listResumable(server).trailingParts).toHaveLength(1)
    server.fail('DeleteObject', { status: 403, code: 'AccessDenied' })
    server.fail('AbortMultipartUpload', { status: 403, code: 'AccessDenied' })
    expect((await callUpload(app, 'DELETE', begun.location)).status).toBe(204)
    expect(listResumable(server)).toMatchObject({ trailingParts: [expect.any(String)], uploads: 2 })
    server.heal()
    await sweep()
    expect(server.uploads.size).toBe(2)
    clock.advance(2 * HOUR)
    await sweep()
    expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
    expect((await readArtifact(app, ready.id)).equals(bytes)).toBe(true)
  })
})

describe('an upload to a failing bucket', () => {
  test.each([
    [503, 'while storing the trailing part', 'PutObject', { status: 503, code: 'SlowDown' }],
    [503, 'while storing a part', 'UploadPart', { status: 500, code: 'InternalError' }],
    [507, 'for lack of space', 'UploadPart', { status: 507, code: 'XMinioStorageFull' }],
    [503, 'while reading the trailing part', 'GetObject', { status: 403, code: 'AccessDenied' }],
  ] as const)(
    'returns %i if the bucket fails %s, and can be resumed later',
    async (status, _why, operation, fault) => {
      const { app, server } = await startScripted()
      const bytes = randomBytes(20 * MIB)
      const begun = await createUpload(app, { size: bytes.length, body: bytes.subarray(0, 3 * MIB) })
      server.fail(operation, fault)
      const answer = await patchUpload(app, begun, 3 * MIB, bytes.subarray(3 * MIB))
      expect(answer).toMatchObject({ status, body: { ok: false } })
      server.heal()
      const offset = await readOffset(app, begun)
      expect((await patchUpload(app, begun, offset, toChunkStream(bytes.subarray(offset), MIB))).status).toBe(
        204,
      )
      await waitForState(app, begun.id, 'ready')
      expect((await readArtifact(app, begun.id)).equals(bytes)).toBe(true)
    },
  )

  test('returns 503 if its completion fails, and the sweeper completes it later', async () => {
    const { app, server, sweep } = await startScripted()
    const bytes = randomBytes(9 * MIB)
    const begun = await createUpload(app, { size: bytes.length })
    server.fail('CompleteMultipartUpload', { status: 503, code: 'SlowDown' })
    expect((await patchUpload(app, begun, 0, bytes)).status).toBe(503)
    expect(await readOffset(app, begun)).toBe(bytes.length)
    server.heal()
    await sweep()
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).equals(bytes)).toBe(true)
  })

  test('restarts at offset 0 after the bucket loses its parts', async () => {
    const { app, server } = await startScripted()
    const bytes = randomBytes(20 * MIB)
    const begun = await createUpload(app, { size: bytes.length, body: bytes.subarray(0, 9 * MIB) })
    server.uploads.clear()
    expect((await patchUpload(app, begun, 9 * MIB, bytes.subarray(9 * MIB))).status).toBe(503)
    expect((await patchUpload(app, begun, 9 * MIB, bytes.subarray(9 * MIB))).status).toBe(409)
    expect(await readOffset(app, begun)).toBe(0)
    expect((await patchUpload(app, begun, 0, bytes)).status).toBe(204)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).equals(bytes)).toBe(true)
  })
})

test('an upload to a bucket stores the bytes it received before the client disconnected', async () => {
  const { app } = await startScripted()
  const begun = await createUpload(app, { size: 20 * MIB })
  const connection = await RawConnection.open(app)
  const head = ['Host: x', `Authorization: Bearer ${app.key}`, 'Tus-Resumable: 1.0.0', 'Upload-Offset: 0']
  const body = [`Content-Type: ${BODY_TYPE}`, `Content-Length: ${20 * MIB}`]
  connection.send(toRequest(`PATCH ${begun.location}`, [...head, ...body]))
  connection.send(randomBytes(10 * MIB))
  connection.endSending()
  expect(await eventually(() => readOffset(app, begun), 10 * MIB)).toBe(10 * MIB)
  expect((await postUpload(app)).status).toBe(201)
  expect((await headUpload(app, begun)).status).toBe(200)
})
