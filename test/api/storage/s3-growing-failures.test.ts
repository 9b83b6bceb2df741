/** A bucket that fails while something grows in it: what passes, what the writer is told, and what another goes on from. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test, vi } from 'vitest'
import { listResumable, ResumableRow } from '../../support/growing.ts'
import { type Fault, S3Server } from '../../support/s3-server.ts'
import { MIB, openResumable, type StoreOptions, shortTimings } from '../../support/s3-store.ts'

// Many megabytes go to a server in this very process.
vi.setConfig({ testTimeout: 60_000 })

const slowDown = { status: 503, code: 'SlowDown' }
const internalError = { status: 500, code: 'InternalError' }
const away = { reason: 'service_unavailable' }
const calls = [
  'ListObjectsV2',
  'GetObject',
  'PutObject',
  'DeleteObject',
  'CreateMultipartUpload',
  'UploadPart',
  'CompleteMultipartUpload',
] as const

async function startWorld(options: StoreOptions = {}) {
  const server = await S3Server.start()
  const store = await openResumable(server, options)
  return { server, store, row: new ResumableRow(store) }
}

test.each([
  ['503 SlowDown', slowDown],
  ['500', internalError],
  ['a broken connection', 'reset'],
  ['a lost answer', 'lose'],
] satisfies [string, Fault][])('%s, twice for each call, does no harm', async (_what, fault) => {
  const { server, row } = await startWorld()
  const bytes = randomBytes(18 * MIB)
  for (const operation of calls) server.fail(operation, fault, 2)
  await row.add(bytes.subarray(0, 9 * MIB + 5))
  await row.add(bytes.subarray(9 * MIB + 5))
  expect((await row.finish()).equals(bytes)).toBe(true)
  // Those that were begun without anybody learning of it go with the sweeper.
  await row.store.resumable.delete(row.name)
  expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
})

test('silence does no harm either', async () => {
  const { server, row } = await startWorld({ timings: shortTimings })
  const bytes = randomBytes(100)
  for (const operation of ['ListObjectsV2', 'PutObject', 'GetObject'] as const)
    server.fail(operation, 'hang', 1)
  await row.add(bytes.subarray(0, 50))
  await row.add(bytes.subarray(50))
  expect((await row.finish()).equals(bytes)).toBe(true)
})

describe('what does not pass', () => {
  test.each([
    ['SlowDown for a part', 'UploadPart', slowDown, away],
    ['500 for a tail', 'PutObject', internalError, away],
    [
      'AccessDenied for the beginning of a multipart upload',
      'CreateMultipartUpload',
      { status: 403, code: 'AccessDenied' },
      away,
    ],
    [
      'a full disk for a part',
      'UploadPart',
      { status: 507, code: 'XMinioStorageFull' },
      { reason: 'storage_full' },
    ],
    ['a quota for a tail', 'PutObject', { status: 403, code: 'QuotaExceeded' }, { reason: 'storage_full' }],
  ] as const)('(%s) is told, and what was written down stays', async (_what, operation, fault, told) => {
    const { server, row } = await startWorld()
    const bytes = randomBytes(20 * MIB)
    await row.add(bytes.subarray(0, 2 * MIB))
    server.fail(operation, fault)
    await expect(row.add(bytes.subarray(2 * MIB))).rejects.toMatchObject(told)
    expect(row.receivedBytes).toBe(2 * MIB)
    server.heal()
    await row.add(bytes.subarray(2 * MIB))
    expect((await row.finish()).equals(bytes)).toBe(true)
  })

  test('while it is ended leaves what can be ended later', async () => {
    const { server, row } = await startWorld()
    const bytes = randomBytes(9 * MIB)
    await row.add(bytes)
    server.fail('CompleteMultipartUpload', slowDown)
    await expect(row.finish()).rejects.toMatchObject(away)
    server.heal()
    expect((await row.finish()).equals(bytes)).toBe(true)
    // And once more, after the row could not be written.
    expect((await row.finish()).equals(bytes)).toBe(true)
  })
})

describe('parts that the bucket has thrown away', () => {
  test('while somebody writes end the request, and the next one begins again', async () => {
    const { server, row } = await startWorld()
    const bytes = randomBytes(18 * MIB)
    await row.add(bytes.subarray(0, 9 * MIB))
    server.uploads.clear()
    await expect(row.add(bytes.subarray(9 * MIB))).rejects.toMatchObject(away)
    expect(await row.store.resumable.extend(row.name, row.receivedBytes, ++row.fence)).toBe(undefined)
    expect(await row.store.resumable.findSize(row.name)).toBe(undefined)
    row.receivedBytes = 0
    await row.add(bytes)
    expect((await row.finish()).equals(bytes)).toBe(true)
  })

  test('are never taken for a whole', async () => {
    const { server, row } = await startWorld()
    await row.add(randomBytes(9 * MIB))
    server.uploads.clear()
    await expect(row.finish()).rejects.toMatchObject({ code: 'NoSuchUpload' })
    await expect(row.store.resumable.commit(row.name, 5)).rejects.toThrow('does not have 5 bytes')
  })
})

describe('what is thrown away', () => {
  test('leaves nothing, however far it had come', async () => {
    const { server, row } = await startWorld()
    await row.store.resumable.delete(row.name)
    for (const size of [10, 9 * MIB, 8 * MIB]) {
      await row.add(randomBytes(size))
      await row.lease()
    }
    const other = new ResumableRow(row.store)
    await other.add(randomBytes(9 * MIB))
    await row.store.resumable.delete(row.name)
    expect(listResumable(server)).toMatchObject({
      trailingParts: [expect.stringContaining(other.name)],
      uploads: 1,
    })
  })

  test('is left to the sweeper where the bucket does not answer, or cannot list', async () => {
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    const { server, row } = await startWorld({ log })
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
