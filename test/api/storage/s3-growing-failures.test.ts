/** Tests that resumable uploads survive S3 failures, and that deleted ones leave nothing in the bucket. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test, vi } from 'vitest'
import { listResumable, UploadRow } from '../../support/resumable-rows.ts'
import { type Fault, S3Server } from '../../support/s3-server.ts'
import { MIB, openResumable, type StoreOptions, shortTimeouts } from '../../support/s3-store.ts'

// Sending many megabytes to the in-process S3 server may take longer than the default timeout.
vi.setConfig({ testTimeout: 60_000 })

const slowDown = { status: 503, code: 'SlowDown' }
const internalError = { status: 500, code: 'InternalError' }
const unavailable = { reason: 'service_unavailable' }
const calls = [
  'ListObjectsV2',
  'GetObject',
  'PutObject',
  'DeleteObject',
  'CreateMultipartUpload',
  'UploadPart',
  'CompleteMultipartUpload',
] as const

async function start(options: StoreOptions = {}) {
  const server = await S3Server.start()
  const store = await openResumable(server, options)
  return { server, store, row: new UploadRow(store) }
}

test.each([
  ['503 SlowDown', slowDown],
  ['500', internalError],
  ['a reset connection', 'reset'],
  ['a lost response', 'lose'],
] satisfies [string, Fault][])(
  'an upload succeeds even if each operation fails twice with %s',
  async (_what, fault) => {
    const { server, row } = await start()
    const bytes = randomBytes(18 * MIB)
    for (const operation of calls) server.fail(operation, fault, 2)
    await row.add(bytes.subarray(0, 9 * MIB + 5))
    await row.add(bytes.subarray(9 * MIB + 5))
    expect((await row.finish()).equals(bytes)).toBe(true)
    // Deletes multipart uploads whose start succeeded but whose response was lost.
    await row.store.resumable.delete(row.name)
    expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
  },
)

test('an upload succeeds despite a timeout', async () => {
  const { server, row } = await start({ timings: shortTimeouts })
  const bytes = randomBytes(100)
  for (const operation of ['ListObjectsV2', 'PutObject', 'GetObject'] as const)
    server.fail(operation, 'hang', 1)
  await row.add(bytes.subarray(0, 50))
  await row.add(bytes.subarray(50))
  expect((await row.finish()).equals(bytes)).toBe(true)
})

describe('a permanent S3 failure', () => {
  test.each([
    ['SlowDown for a part', 'UploadPart', slowDown, unavailable],
    ['500 for the trailing part', 'PutObject', internalError, unavailable],
    [
      'AccessDenied for the start of a multipart upload',
      'CreateMultipartUpload',
      { status: 403, code: 'AccessDenied' },
      unavailable,
    ],
    [
      'a full disk for a part',
      'UploadPart',
      { status: 507, code: 'XMinioStorageFull' },
      { reason: 'storage_full' },
    ],
    [
      'a quota for the trailing part',
      'PutObject',
      { status: 403, code: 'QuotaExceeded' },
      { reason: 'storage_full' },
    ],
  ] as const)(
    'is reported, and the recorded bytes remain stored (%s)',
    async (_what, operation, fault, expected) => {
      const { server, row } = await start()
      const bytes = randomBytes(20 * MIB)
      await row.add(bytes.subarray(0, 2 * MIB))
      server.fail(operation, fault)
      await expect(row.add(bytes.subarray(2 * MIB))).rejects.toMatchObject(expected)
      expect(row.receivedBytes).toBe(2 * MIB)
      server.heal()
      await row.add(bytes.subarray(2 * MIB))
      expect((await row.finish()).equals(bytes)).toBe(true)
    },
  )

  test('does not prevent the completion of the blob later', async () => {
    const { server, row } = await start()
    const bytes = randomBytes(9 * MIB)
    await row.add(bytes)
    server.fail('CompleteMultipartUpload', slowDown)
    await expect(row.finish()).rejects.toMatchObject(unavailable)
    server.heal()
    expect((await row.finish()).equals(bytes)).toBe(true)
    // The server completes the upload again if it could not write the database row.
    expect((await row.finish()).equals(bytes)).toBe(true)
  })
})

describe('parts that the bucket has lost', () => {
  test('make the current write fail and the next one start at zero', async () => {
    const { server, row } = await start()
    const bytes = randomBytes(18 * MIB)
    await row.add(bytes.subarray(0, 9 * MIB))
    server.uploads.clear()
    await expect(row.add(bytes.subarray(9 * MIB))).rejects.toMatchObject(unavailable)
    expect(await row.store.resumable.extend(row.name, row.receivedBytes, ++row.fence)).toBe(undefined)
    expect(await row.store.resumable.findSize(row.name)).toBe(undefined)
    row.receivedBytes = 0
    await row.add(bytes)
    expect((await row.finish()).equals(bytes)).toBe(true)
  })

  test('never become a complete blob', async () => {
    const { server, row } = await start()
    await row.add(randomBytes(9 * MIB))
    server.uploads.clear()
    await expect(row.finish()).rejects.toMatchObject({ code: 'NoSuchUpload' })
    await expect(row.store.resumable.commit(row.name, 5)).rejects.toThrow('does not have 5 bytes')
  })
})

describe('a deleted upload', () => {
  test('leaves nothing behind, at any stage of the upload', async () => {
    const { server, row } = await start()
    await row.store.resumable.delete(row.name)
    for (const size of [10, 9 * MIB, 8 * MIB]) {
      await row.add(randomBytes(size))
      await row.lease()
    }
    const other = new UploadRow(row.store)
    await other.add(randomBytes(9 * MIB))
    await row.store.resumable.delete(row.name)
    expect(listResumable(server)).toMatchObject({
      trailingParts: [expect.stringContaining(other.name)],
      uploads: 1,
    })
  })

  test('is removed by the sweeper if the bucket cannot list uploads', async () => {
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    const { server, row } = await start({ log })
    await row.add(randomBytes(9 * MIB))
    server.fail('ListMultipartUploads', { status: 501, code: 'NotImplemented' })
    await row.store.resumable.delete(row.name)
    expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 1 })
    const names: string[] = []
    for await (const { name } of row.store.resumable.list()) names.push(name)
    expect(names).toEqual([])
    expect(lines).toHaveLength(2)
    server.heal()
    for await (const { name } of row.store.resumable.list()) await row.store.resumable.delete(name)
    expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
  })
})
