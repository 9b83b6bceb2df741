/** Tests how the S3 store writes, reads, lists and deletes blobs. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { choosePartBytes } from '../../../src/storage/s3/upload.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { S3Server } from '../../support/s3-server.ts'
import {
  chunksOf,
  listEntries,
  listNames,
  MIB,
  openStore,
  readBlob,
  shortTimeouts,
  storeRandomBlob,
} from '../../support/s3-store.ts'

const HOUR_MS = 3_600_000

describe('a small blob', () => {
  test.each([
    ['no bytes', 0],
    ['one byte', 1],
    ['exactly one part', 8 * MIB],
  ])('is sent in one PUT request when it is committed: %s', async (_what, sizeBytes) => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const bytes = randomBytes(sizeBytes)
    const before = server.calls.length
    const blob = await blobs.stage(chunksOf(bytes))
    expect(blob.name).toMatch(/^[0-9a-f-]{36}$/)
    expect(blob.sizeBytes).toBe(sizeBytes)
    expect(server.calls.length).toBe(before)
    await blob.commit()
    expect(server.calls.slice(before).map(({ operation }) => operation)).toEqual(['PutObject'])
    expect((await readBlob(blobs, blob.name)).equals(bytes)).toBe(true)
    expect(await listNames(blobs)).toEqual([blob.name])
  })

  test('is never sent to the bucket if it is aborted', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const before = server.calls.length
    const blob = await blobs.stage(chunksOf(randomBytes(MIB)))
    await blob.abort()
    await blob.abort()
    expect(server.calls.length).toBe(before)
  })
})

describe('a large blob', () => {
  test('is sent in parts of 8 MiB, at most two at a time, and is listed after its commit', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const bytes = randomBytes(37 * MIB + 5)
    const blob = await blobs.stage(chunksOf(bytes))
    expect(server.listBlobs()).toEqual([])
    expect(Buffer.from(blob.head).equals(bytes.subarray(0, 4096))).toBe(true)
    const [upload] = server.uploads.values()
    const sizes = [...(upload?.parts ?? [])]
      .sort(([one], [other]) => one - other)
      .map(([, part]) => part.length)
    expect(sizes).toEqual([8 * MIB, 8 * MIB, 8 * MIB, 8 * MIB, 5 * MIB + 5])
    expect(server.mostAtOnce('UploadPart')).toBeLessThanOrEqual(2)
    await blob.commit()
    expect(server.listBlobs()).toEqual([blob.name])
    expect(server.uploads.size).toBe(0)
    expect((await readBlob(blobs, blob.name)).equals(bytes)).toBe(true)
  })

  test('is never mixed up with a concurrent or later blob', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const sizes = [17 * MIB, 9 * MIB, MIB]
    const kept = await Promise.all(sizes.map((sizeBytes) => storeRandomBlob(blobs, sizeBytes)))
    for (const sizeBytes of sizes) kept.push(await storeRandomBlob(blobs, sizeBytes))
    for (const { name, bytes } of kept) expect((await readBlob(blobs, name)).equals(bytes)).toBe(true)
  })

  test('is read from its source at most two parts ahead of the bucket', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server, { timings: shortTimeouts })
    server.fail('UploadPart', 'hang')
    let taken = 0
    async function* counted(): AsyncIterable<Uint8Array> {
      for (let chunks = 0; chunks < 64; chunks++) {
        taken += MIB
        yield Buffer.alloc(MIB)
      }
    }
    await expect(blobs.stage(counted())).rejects.toMatchObject({ reason: 'service_unavailable' })
    // Two parts of 8 MiB, plus the chunk that no longer fits into them.
    expect(taken).toBe(17 * MIB)
  })

  test.each([
    ['it is aborted', async () => {}],
    ['its sender fails', async () => Promise.reject(new Error('stream failed midway'))],
  ])('leaves nothing behind if %s', async (_what, end) => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    async function* sent(): AsyncIterable<Uint8Array> {
      yield* chunksOf(randomBytes(20 * MIB))
      await end()
    }
    const staged = await blobs.stage(sent()).catch((error: Error) => error.message)
    if (typeof staged === 'string') expect(staged).toBe('stream failed midway')
    else {
      await staged.abort()
      await staged.abort()
    }
    expect(server.count('AbortMultipartUpload')).toBe(1)
    expect(server.uploads.size).toBe(0)
    expect(await listNames(blobs)).toEqual([])
  })

  test('is sent in larger parts if it would otherwise need more than 10,000', () => {
    const GIB = 1024 * MIB
    expect([0, 2 * GIB, 78 * GIB].map(choosePartBytes)).toEqual([8 * MIB, 8 * MIB, 8 * MIB])
    expect(choosePartBytes(1024 * GIB)).toBe(105 * MIB)
    expect(choosePartBytes(1024 * GIB) * 10_000).toBeGreaterThan(1024 * GIB)
  })
})

describe('a committed blob', () => {
  test('can be read in any range within its bounds', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const { name, bytes } = await storeRandomBlob(blobs, 1_000)
    const part = async (start: number, end: number) =>
      (await readBlob(blobs, name, { start, end })).toString('hex')
    expect(await part(2, 4)).toBe(bytes.subarray(2, 5).toString('hex'))
    expect(await part(999, 999)).toBe(bytes.subarray(999).toString('hex'))
    expect(await part(0, 999)).toBe(bytes.toString('hex'))
    await expect(part(500, 1_000)).rejects.toThrow('bytes 500-999/1000')
    await expect(part(1_000, 1_000)).rejects.toThrow('InvalidRange')
  })

  test("is read at the reader's pace", async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const { name } = await storeRandomBlob(blobs, 16 * MIB)
    const stream = await blobs.open(name)
    stream.once('readable', () => stream.read(1))
    expect(await server.isStuck('GetObject')).toBe(true)
    expect(stream.readableLength).toBeLessThan(MIB)
    stream.destroy()
  })

  test('can be deleted more than once', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server)
    const { name } = await storeRandomBlob(blobs, 10)
    await blobs.delete(name)
    await blobs.delete(name)
    expect(server.listBlobs()).toEqual([])
    await expect(blobs.open(name)).rejects.toThrow('does not exist')
  })

  test('is listed page by page, without unrelated objects', async () => {
    const server = await S3Server.start()
    const blobs = await openStore(server, { config: { prefix: 'parley/' } })
    server.pageSize = 2
    const names: string[] = []
    for (let count = 0; count < 5; count++) names.push((await storeRandomBlob(blobs, 1)).name)
    for (const key of ['parley/files/notes.txt', 'parley/other', `files/${names[0]}`])
      server.objects.set(key, { bytes: Buffer.from('not ours'), modifiedMs: 0 })
    expect((await listNames(blobs)).sort()).toEqual(names.sort())
    expect([...server.objects.keys()].filter((key) => key.startsWith('parley/files/'))).toHaveLength(7)
  })

  test('is dated by its commit, even if its upload started earlier', async () => {
    const server = await S3Server.start()
    const clock = createFakeClock()
    const blobs = await openStore(server, { clock })
    server.now = () => clock.now()
    const blob = await blobs.stage(chunksOf(randomBytes(9 * MIB)))
    clock.advance((2 * HOUR_MS) / 1000)
    await blob.commit()
    const { name } = blob
    expect(await listEntries(blobs)).toEqual([{ name, storedAtMs: clock.now() }])
    const storedAtMs = clock.now()
    clock.advance(60)
    await blobs.abortAbandoned()
    expect(await listEntries(blobs)).toEqual([{ name, storedAtMs }])
  })
})

test('an S3 request is fully signed and does not contain headers that older servers reject', async () => {
  const server = await S3Server.start()
  const blobs = await openStore(server)
  await readBlob(blobs, (await storeRandomBlob(blobs, 9 * MIB)).name)
  await storeRandomBlob(blobs, 1)
  const headers = new Set(server.calls.flatMap((call) => Object.keys(call.headers)))
  expect([...headers].filter((name) => /checksum|trailer|expect|encoding/.test(name))).toEqual([])
  expect(server.calls.map((call) => call.headers['x-amz-content-sha256'])).not.toContain('UNSIGNED-PAYLOAD')
})
