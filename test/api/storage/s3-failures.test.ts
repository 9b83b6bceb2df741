/** Tests that the S3 store retries failed requests, reports lasting failures and cleans up afterwards. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { Blobs } from '../../../src/storage/blobs.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { credentials, S3Server } from '../../support/s3-server.ts'
import {
  chunksOf,
  listNames,
  MIB,
  openStore,
  readBlob,
  shortTimeouts,
  storeRandomBlob,
} from '../../support/s3-store.ts'

const slowDown = { status: 503, code: 'SlowDown' }
const internalError = { status: 500, code: 'InternalError' }
const unavailable = { reason: 'service_unavailable' }

describe('a temporary S3 failure', () => {
  test.each([
    ['503 SlowDown', slowDown],
    ['500', internalError],
    ['a reset connection', 'reset'],
    ['a reset connection after a successful operation', 'lose'],
  ] as const)('is retried twice: %s', async (_what, fault) => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const { name, bytes } = await storeRandomBlob(blobs, 100)
    for (const operation of ['PutObject', 'GetObject', 'ListObjectsV2', 'DeleteObject'] as const)
      server.fail(operation, fault, 2)
    const second = await storeRandomBlob(blobs, 100)
    expect((await readBlob(blobs, name)).equals(bytes)).toBe(true)
    await blobs.delete(second.name)
    expect(server.listBlobs()).toEqual([name])
  })

  test('is retried in every step of a large blob', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    for (const operation of ['CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload'] as const)
      for (const fault of [slowDown, 'reset'] as const) server.fail(operation, fault, 1)
    const { name, bytes } = await storeRandomBlob(blobs, 20 * MIB)
    expect((await readBlob(blobs, name)).equals(bytes)).toBe(true)
  })

  test('is retried after a timeout', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server, { timings: shortTimeouts })
    server.fail('PutObject', 'hang', 1)
    const { name, bytes } = await storeRandomBlob(blobs, 100)
    server.fail('GetObject', 'hang', 1)
    expect((await readBlob(blobs, name)).equals(bytes)).toBe(true)
  })

  test('is ignored if only the response to the completion of a large blob was lost', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    server.fail('CompleteMultipartUpload', 'lose', 1)
    const { name, bytes } = await storeRandomBlob(blobs, 9 * MIB)
    expect(server.count('CompleteMultipartUpload')).toBe(2)
    expect((await readBlob(blobs, name)).equals(bytes)).toBe(true)
  })
})

describe('a permanent S3 failure', () => {
  test.each([
    ['503 SlowDown', slowDown, 3, unavailable],
    ['500', internalError, 3, unavailable],
    ['AccessDenied', { status: 403, code: 'AccessDenied' }, 1, unavailable],
    ['a deleted bucket', { status: 404, code: 'NoSuchBucket' }, 1, unavailable],
    ['reset connections', 'reset', 3, unavailable],
    ['a full disk', { status: 507, code: 'XMinioStorageFull' }, 1, { reason: 'storage_full' }],
    ['an exceeded quota', { status: 403, code: 'QuotaExceeded' }, 1, { reason: 'storage_full' }],
    [
      'a request that S3 rejects as invalid',
      { status: 400, code: 'InvalidArgument' },
      1,
      { name: 'S3Failure' },
    ],
  ] as const)('is reported with its kind: %s', async (_what, fault, calls, expected) => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const before = server.count('PutObject')
    server.fail('PutObject', fault)
    const blob = await blobs.stage(chunksOf(Buffer.from('bytes')))
    await expect(blob.commit()).rejects.toMatchObject(expected)
    expect(server.count('PutObject') - before).toBe(calls)
    server.heal()
    await blob.abort()
    expect(server.listBlobs()).toEqual([])
  })

  test('is reported by every operation without secrets or details of the request', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const { name } = await storeRandomBlob(blobs, 1)
    for (const operation of ['GetObject', 'DeleteObject', 'ListObjectsV2', 'HeadBucket'] as const)
      server.fail(operation, { status: 403, code: 'SignatureDoesNotMatch' })
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    const calls = [() => blobs.open(name), () => blobs.delete(name), () => listNames(blobs)]
    for (const call of calls) {
      const error = await call().catch((thrown) => thrown)
      expect(error).toMatchObject(unavailable)
      log.warn({ err: error }, 'failed')
    }
    await expect(blobs.check()).rejects.toThrow()
    const text = lines.join()
    expect(text).toContain('SignatureDoesNotMatch')
    for (const secret of Object.values(credentials))
      if (secret !== undefined) expect(text).not.toContain(secret)
  })

  test('aborts the upload and removes its other parts if it affects one part', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    server.fail('UploadPart', { status: 403, code: 'AccessDenied' }, 1)
    await expect(blobs.stage(chunksOf(randomBytes(40 * MIB)))).rejects.toMatchObject(unavailable)
    expect(server.count('UploadPart')).toBeLessThan(5)
    expect(server.uploads.size).toBe(0)
  })

  test('leaves no parts and no blob if it occurs while a multipart upload is completed', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    server.fail('CompleteMultipartUpload', internalError)
    const blob = await blobs.stage(chunksOf(randomBytes(9 * MIB)))
    await expect(blob.commit()).rejects.toMatchObject(unavailable)
    await blob.abort()
    expect(server.uploads.size).toBe(0)
    expect(server.listBlobs()).toEqual([])
  })

  test('is not reported if it affects an abort, after which the sweeper deletes the parts', async () => {
    const server = await S3Server.start()
    const clock = createFakeClock()
    server.now = () => clock.now()
    const blobs = await openStore(server, { clock })
    server.fail('AbortMultipartUpload', internalError, 3)
    const blob = await blobs.stage(chunksOf(randomBytes(9 * MIB)))
    await blob.abort()
    expect(server.uploads.size).toBe(1)
    await blobs.abortAbandoned()
    expect(server.uploads.size).toBe(1)
    clock.advance(3_601)
    const arriving = await blobs.stage(chunksOf(randomBytes(9 * MIB)))
    await blobs.abortAbandoned()
    expect(server.uploads.size).toBe(1)
    clock.advance(7_200)
    await blobs.abortAbandoned()
    await arriving.commit()
    expect(server.listBlobs()).toEqual([arriving.name])
  })
})

describe('a download from S3', () => {
  async function keepLarge(server: S3Server): Promise<{ blobs: Blobs; name: string; bytes: Buffer }> {
    const blobs = await openStore(server, { timings: shortTimeouts })
    return { blobs, ...(await storeRandomBlob(blobs, 3 * MIB)) }
  }

  test.each([
    ['is reset', { cutAfterBytes: MIB }],
    ['stalls', { stallAfterBytes: MIB }],
  ])('resumes at the same position if its connection %s', async (_how, fault) => {
    const server = await S3Server.start()
    const { blobs, name, bytes } = await keepLarge(server)
    const before = server.count('GetObject')
    server.fail('GetObject', fault, 2)
    expect(
      (await readBlob(blobs, name, { start: 7, end: bytes.length - 8 })).equals(bytes.subarray(7, -7)),
    ).toBe(true)
    expect(server.count('GetObject') - before).toBeGreaterThanOrEqual(3)
  })

  test('fails after three attempts that return no further bytes', async () => {
    const server = await S3Server.start()
    const { blobs, name } = await keepLarge(server)
    const before = server.count('GetObject')
    server.fail('GetObject', { cutAfterBytes: 0 })
    await expect(readBlob(blobs, name)).rejects.toMatchObject(unavailable)
    expect(server.count('GetObject') - before).toBe(3)
  })

  test('fails if its object is deleted midway', async () => {
    const server = await S3Server.start()
    const { blobs, name } = await keepLarge(server)
    server.fail('GetObject', { cutAfterBytes: MIB }, 1)
    const stream = await blobs.open(name)
    server.objects.delete(`files/${name}`)
    await expect(stream.toArray()).rejects.toThrow('does not exist')
  })

  test('aborts the S3 request when its reader abandons it', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const { name } = await storeRandomBlob(blobs, 16 * MIB)
    const stream = await blobs.open(name)
    expect(await server.isStuck('GetObject')).toBe(true)
    stream.destroy()
    await expect.poll(() => server.calls.at(-1)?.isLeft).toBe(true)
  })

  test('ends when the store is closed', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const { name } = await storeRandomBlob(blobs, 16 * MIB)
    const stream = await blobs.open(name)
    await blobs.close()
    await expect(stream.toArray()).rejects.toThrow()
  })
})

describe('a storage check of a bucket', () => {
  test('fails if the bucket returns an error', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    expect(await blobs.check()).toBe('up')
    server.fail('HeadBucket', internalError)
    await expect(blobs.check()).rejects.toThrow()
  })

  test('reports a full bucket until a write succeeds', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    server.fail('PutObject', { status: 507, code: 'XMinioStorageFull' })
    const blob = await blobs.stage(chunksOf(Buffer.from('bytes')))
    expect(await blobs.check()).toBe('up')
    await expect(blob.commit()).rejects.toMatchObject({ reason: 'storage_full' })
    expect(await blobs.check()).toBe('full')
    server.heal()
    const before = server.objects.size
    expect(await blobs.check()).toBe('up')
    expect(server.objects.size).toBe(before)
  })
})
