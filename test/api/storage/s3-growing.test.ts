/**
 * Tests that writers in different processes can continue a resumable upload in a bucket without losing bytes.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { listResumable, UploadRow } from '../../support/resumable-rows.ts'
import { S3Server } from '../../support/s3-server.ts'
import { listNames, MIB, openResumable } from '../../support/s3-store.ts'

// Sending many megabytes to the in-process S3 server may take longer than the default timeout.
vi.setConfig({ testTimeout: 60_000 })

const GIB = 1024 ** 3

async function start() {
  const server = await S3Server.start()
  const store = await openResumable(server)
  return { server, store, row: new UploadRow(store) }
}

describe('a resumable blob', () => {
  test.each([
    ['smaller than a part', [1, 10, 70_000, 3 * MIB]],
    ['of whole parts', [8 * MIB, 8 * MIB, 16 * MIB]],
    ['of odd sizes', [1, 9 * MIB + 1, 3, 7 * MIB, 2 * MIB - 7, 17 * MIB + 5, 1]],
    ['in one request', [30 * MIB + 1]],
  ])('is stored byte for byte even if a new process handles each request (%s)', async (_what, sizes) => {
    const { server, row } = await start()
    const pieces = sizes.map((size) => randomBytes(size))
    for (const [index, piece] of pieces.entries()) {
      const other = await openResumable(server)
      const writer = await row.lease(other.resumable)
      await writer.write(piece, [MIB, 300_001][index % 2])
      await writer.sync()
      await writer.blob.close()
      await expect.poll(() => listResumable(server).trailingParts).toHaveLength(1)
    }
    const bytes = Buffer.concat(pieces)
    expect((await row.finish()).equals(bytes)).toBe(true)
    expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
    expect(await listNames(row.store.blobs)).toEqual([row.name])
  })

  test('is sent one part at a time, in parts of equal size except for the last one', async () => {
    const { server, row } = await start()
    for (const size of [9 * MIB, 5 * MIB, 20 * MIB, 100]) await row.add(randomBytes(size))
    await row.finish()
    const parts = server.calls.filter(({ operation }) => operation === 'UploadPart')
    const sizes = parts.map(({ headers }) => Number(headers['content-length']))
    expect(sizes).toEqual([8 * MIB, 8 * MIB, 8 * MIB, 8 * MIB, 2 * MIB + 100])
    expect(server.mostAtOnce('UploadPart')).toBe(1)
  })

  test('stores only the bytes after the last full part in its trailing part', async () => {
    const { server, row } = await start()
    const writer = await row.lease()
    for (let sent = 0; sent < 9; sent++) await writer.append(randomBytes(MIB))
    const syncing = writer.sync()
    for (let sent = 0; sent < 6; sent++) await writer.append(randomBytes(MIB))
    await syncing
    expect(row.receivedBytes).toBe(9 * MIB)
    expect(listResumable(server).trailingParts).toEqual([expect.stringMatching(`/1-${8 * MIB}-${9 * MIB}$`)])
    await writer.blob.close()
  })

  test('may be empty', async () => {
    const { server, row } = await start()
    await (await row.lease()).blob.close()
    expect(await row.finish()).toHaveLength(0)
    expect(await listNames(row.store.blobs)).toEqual([row.name])
    expect(server.count('CreateMultipartUpload')).toBe(0)
  })

  test('can consist of thousands of requests up to 5 GiB and uses larger parts above that', async () => {
    const server = await S3Server.start()
    const store = await openResumable(server, { maxBytes: 5 * GIB })
    const row = new UploadRow(store)
    await row.add(randomBytes(9 * MIB))
    row.fence = 20_000
    await row.add(randomBytes(9 * MIB))
    const [upload] = server.uploads.values()
    const [, second = 0] = [...(upload?.parts.keys() ?? [])]
    // S3 part numbers end at 10,000, which leaves numbers for 639 parts, including this one.
    expect(second).toBe(10_001 - 639)
    const large = new UploadRow(await openResumable(server, { maxBytes: 100 * GIB }))
    await large.add(randomBytes(24 * MIB))
    expect([...server.uploads.values()].at(-1)?.parts.get(1)).toHaveLength(21 * MIB)
  })
})

describe('killing the process', () => {
  test('between any two operations does not lose recorded bytes', async () => {
    const bytes = randomBytes(18 * MIB)
    const reached: number[] = []
    for (let calls = 0; reached.at(-1) !== bytes.length; calls++) {
      const { server, row } = await start()
      await row.add(bytes.subarray(0, 3 * MIB))
      server.serveOnly(calls)
      await row.add(bytes.subarray(3 * MIB)).catch(() => {})
      server.heal()
      reached.push(row.receivedBytes)
      await row.add(bytes.subarray(row.receivedBytes))
      expect((await row.finish()).equals(bytes)).toBe(true)
      expect(listResumable(server).trailingParts).toEqual([])
    }
    expect([...new Set(reached)]).toEqual([3 * MIB, 11 * MIB, 18 * MIB])
  })

  test('at any point during the completion leaves a blob that can still be completed', async () => {
    const bytes = randomBytes(9 * MIB)
    const ends: string[] = []
    while (ends.at(-1) !== 'kept') {
      const { server, row } = await start()
      await row.add(bytes)
      await expect.poll(() => listResumable(server).trailingParts).toHaveLength(1)
      server.serveOnly(ends.length)
      const keeping = row.store.resumable.commit(row.name, bytes.length)
      ends.push(
        await keeping.then(
          () => 'kept',
          () => 'failed',
        ),
      )
      server.heal()
      expect((await row.finish()).equals(bytes)).toBe(true)
      expect(listResumable(server).uploads).toBe(0)
    }
    // A completion sends four S3 requests: list, read the trailing part, upload it, complete.
    expect(ends).toEqual(['failed', 'failed', 'failed', 'failed', 'kept'])
  })

  test('before stored bytes are recorded causes the next writer to send them again', async () => {
    const { row } = await start()
    const bytes = randomBytes(30 * MIB)
    await row.add(bytes.subarray(0, 7 * MIB))
    for (const sizeBytes of [MIB, 4 * MIB, 8 * MIB]) {
      const writer = await row.lease()
      for (let sent = 0; sent < sizeBytes; sent += MIB) await writer.append(randomBytes(MIB))
      await expect(writer.blob.sync(() => Promise.reject(new Error('killed')))).rejects.toThrow('killed')
      await expect(writer.append(Buffer.alloc(1))).rejects.toThrow('killed')
      await writer.blob.close()
    }
    await row.add(bytes.subarray(7 * MIB))
    expect((await row.finish()).equals(bytes)).toBe(true)
  })
})

describe('a writer that has lost its lease', () => {
  test('does not destroy recorded parts if it sends a part late', async () => {
    const { server, row } = await start()
    const bytes = randomBytes(40 * MIB)
    const old = await row.lease()
    await old.write(bytes.subarray(0, 8 * MIB))
    // Fills the next part almost completely before another writer takes over the lease.
    for (let sent = 0; sent < 7; sent++) await old.append(randomBytes(MIB))
    await row.add(bytes.subarray(8 * MIB, 30 * MIB))
    const sentParts = server.count('UploadPart')
    await old.append(randomBytes(2 * MIB))
    await expect(old.sync()).rejects.toThrow('another writer')
    expect(server.count('UploadPart')).toBe(sentParts + 1)
    await old.blob.close()
    await row.add(bytes.subarray(30 * MIB))
    expect((await row.finish()).equals(bytes)).toBe(true)
  })

  test('does not change the offset of the next writer if it writes a trailing part late', async () => {
    const { server, row } = await start()
    const bytes = randomBytes(7 * MIB)
    await row.add(bytes.subarray(0, MIB))
    const old = await row.lease()
    for (let sent = 0; sent < 5; sent++) await old.append(randomBytes(MIB))
    await row.add(bytes.subarray(MIB, 3 * MIB))
    await expect(old.sync()).rejects.toThrow('another writer')
    await old.blob.close()
    await expect.poll(() => listResumable(server).trailingParts).toHaveLength(2)
    await row.add(bytes.subarray(3 * MIB))
    expect((await row.finish()).equals(bytes)).toBe(true)
    expect(listResumable(server).trailingParts).toEqual([])
  })

  test('sends at most one more part', async () => {
    const { server, row } = await start()
    const old = await row.lease()
    row.fence += 1
    await old.append(randomBytes(15 * MIB))
    const appending = expect(old.append(randomBytes(3 * MIB))).rejects.toThrow('another writer')
    await expect(old.sync()).rejects.toThrow('another writer')
    await appending
    await old.blob.close()
    expect(server.count('UploadPart')).toBe(1)
  })

  test('stops sending parts without being aborted', async () => {
    const { server, row } = await start()
    const old = await row.lease()
    row.fence += 1
    const sending = old.write(randomBytes(40 * MIB))
    await expect(sending).rejects.toThrow('another writer')
    await old.blob.close()
    expect(server.count('UploadPart')).toBe(1)
  })
})

test('two writers that start concurrently do not corrupt the upload, and the sweeper deletes the unused parts', async () => {
  const { server, store, row } = await start()
  const bytes = randomBytes(20 * MIB)
  const old = await row.lease()
  const next = await row.lease()
  await next.write(bytes)
  await old.append(randomBytes(9 * MIB))
  await expect(old.sync()).rejects.toThrow('another writer')
  await next.sync()
  await Promise.all([old.blob.close(), next.blob.close()])
  expect((await row.finish()).equals(bytes)).toBe(true)
  expect(server.uploads.size).toBe(1)
  const left: string[] = []
  for await (const { name } of store.resumable.list()) left.push(name)
  expect(left).toEqual([row.name])
  await store.resumable.delete(row.name)
  expect(listResumable(server)).toEqual({ trailingParts: [], uploads: 0 })
  expect(await listNames(store.blobs)).toEqual([row.name])
})

test('opening an S3 store keeps unfinished uploads and lists them with their times', async () => {
  const { server, store, row } = await start()
  server.now = () => 1_000_000
  await row.add(randomBytes(9 * MIB))
  server.now = () => 9_000_000
  const small = new UploadRow(store)
  await small.add(randomBytes(10))
  server.objects.set(`artifacts/growing/notes/1-0-1`, { bytes: Buffer.alloc(1), modifiedMs: 0 })
  server.uploads.set(randomUUID(), { key: 'artifacts/notes', begunMs: 0, parts: new Map() })
  const { resumable, blobs } = await openResumable(server)
  await blobs.abortAbandoned()
  const entries: object[] = []
  for await (const entry of resumable.list()) entries.push(entry)
  expect(entries).toEqual([
    { name: row.name, storedAtMs: 1_000_000 },
    { name: small.name, storedAtMs: 9_000_000 },
  ])
  expect(await listNames(blobs)).toEqual([])
})
