/** Tests how the local store writes blobs to disk and handles a full disk. */
import { randomBytes } from 'node:crypto'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ByteRange } from '../../../src/http/ranges.ts'
import { ServiceError, StartupError } from '../../../src/lib/errors.ts'
import type { Blobs } from '../../../src/storage/blobs.ts'
import { openFolder, type ReadSpace, type Space } from '../../../src/storage/folder.ts'
import { openResumableStore, toResumableStore } from '../../../src/storage/local.ts'
import { startApp } from '../../support/app.ts'
import { listStored, upload } from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

const GIB = 1024 ** 3
const plenty: Space = { freeBytes: 900 * GIB, totalBytes: 1000 * GIB }

async function* chunksOf(...chunks: readonly (string | Uint8Array)[]): AsyncIterable<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

async function read(blobs: Blobs, name: string, range?: ByteRange): Promise<string> {
  const stream: Readable = await blobs.open(name, range)
  return Buffer.concat(await stream.toArray()).toString()
}

async function listNames(blobs: Blobs): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of blobs.list()) names.push(name)
  return names
}

async function openStore(space: Space = plenty): Promise<{ blobs: Blobs; root: string }> {
  const root = join(await makeFolder(), 'data', 'files')
  return { blobs: await openLocalBlobs(root, async () => space), root }
}

describe('a local store', () => {
  test("is readable only by the server's OS user", async () => {
    const { blobs, root } = await openStore()
    const blob = await blobs.stage(chunksOf('secret'))
    const modeOf = async (...path: string[]) => (await stat(join(root, ...path))).mode & 0o777
    expect(await modeOf()).toBe(0o700)
    expect(await modeOf('incoming')).toBe(0o700)
    expect(await modeOf('incoming', blob.name)).toBe(0o600)
    await blob.commit()
    expect(await modeOf(blob.name)).toBe(0o600)
  })

  test('lists a blob under a generated name, but only after its commit', async () => {
    const { blobs } = await openStore()
    const blob = await blobs.stage(chunksOf('one ', 'two ', 'three'))
    expect(blob.name).toMatch(/^[0-9a-f-]{36}$/)
    expect(blob.sizeBytes).toBe(13)
    expect(Buffer.from(blob.head).toString()).toBe('one two three')
    expect(await listNames(blobs)).toEqual([])
    await expect(blobs.open(blob.name)).rejects.toThrow('ENOENT')
    await blob.commit()
    expect(await listNames(blobs)).toEqual([blob.name])
    expect(await read(blobs, blob.name)).toBe('one two three')
  })

  test('returns the first 4,096 bytes of a staged blob', async () => {
    const { blobs } = await openStore()
    const bytes = randomBytes(10_000)
    const blob = await blobs.stage(chunksOf(bytes.subarray(0, 3000), bytes.subarray(3000)))
    expect(Buffer.from(blob.head).equals(bytes.subarray(0, 4096))).toBe(true)
  })

  test('can read any range of a blob but nothing past its end', async () => {
    const { blobs } = await openStore()
    const blob = await blobs.stage(chunksOf('0123456789'))
    await blob.commit()
    expect(await read(blobs, blob.name, { start: 2, end: 4 })).toBe('234')
    expect(await read(blobs, blob.name, { start: 9, end: 9 })).toBe('9')
    await expect(blobs.open(blob.name, { start: 5, end: 10 })).rejects.toThrow('10 bytes')
  })

  test('can abort a staged blob and delete a committed one more than once', async () => {
    const { blobs, root } = await openStore()
    const [staged, kept] = [await blobs.stage(chunksOf('a')), await blobs.stage(chunksOf('b'))]
    await kept.commit()
    await kept.abort()
    expect(await read(blobs, kept.name)).toBe('b')
    for (let times = 0; times < 2; times++) {
      await staged.abort()
      await blobs.delete(kept.name)
    }
    expect(await readdir(join(root, 'incoming'))).toEqual([])
    expect(await listNames(blobs)).toEqual([])
  })

  test('deletes the bytes of a stream that fails', async () => {
    const { blobs, root } = await openStore()
    async function* failing(): AsyncIterable<Uint8Array> {
      yield Buffer.from('so far')
      throw new Error('stream failed midway')
    }
    await expect(blobs.stage(failing())).rejects.toThrow('stream failed midway')
    expect(await readdir(join(root, 'incoming'))).toEqual([])
  })

  test('deletes only the unfinished blobs of an earlier process', async () => {
    const { blobs, root } = await openStore()
    const blob = await blobs.stage(chunksOf('whole'))
    await blob.commit()
    await blobs.stage(chunksOf('half'))
    const again = await openLocalBlobs(root, async () => plenty)
    expect(await readdir(join(root, 'incoming'))).toEqual([])
    expect(await read(again, blob.name)).toBe('whole')
  })

  test('fails to open with a StartupError if its folder cannot be created', async () => {
    const folder = await makeFolder()
    await writeFile(join(folder, 'file'), '')
    await expect(openLocalBlobs(join(folder, 'file', 'files'))).rejects.toThrow(StartupError)
  })

  test('in memory mode uses a temporary folder and deletes it on close', async () => {
    const folder = await makeFolder()
    vi.stubEnv('TMPDIR', folder)
    onTestFinished(() => void vi.unstubAllEnvs())
    const blobs = (await openResumableStore(':memory:', 'files', true)).blobs
    expect(await readdir(folder)).toEqual([])
    const blob = await blobs.stage(chunksOf('for now'))
    await blob.commit()
    expect(await read(blobs, blob.name)).toBe('for now')
    expect(await readdir(folder)).toHaveLength(1)
    await blobs.close()
    expect(await readdir(folder)).toEqual([])
  })
})

describe('a disk', () => {
  const MIB = 1024 ** 2
  test.each([
    ['of 1000 GiB with 51 GiB free', true, { freeBytes: 51 * GIB, totalBytes: 1000 * GIB }],
    ['of 1000 GiB with 49 GiB free', false, { freeBytes: 49 * GIB, totalBytes: 1000 * GIB }],
    ['of 10 GiB with 2.1 GiB free', true, { freeBytes: 2.1 * GIB, totalBytes: 10 * GIB }],
    ['of 10 GiB with 1.9 GiB free', false, { freeBytes: 1.9 * GIB, totalBytes: 10 * GIB }],
    ['of 10 GiB with 2 GiB and 1 MiB free', true, { freeBytes: 2 * GIB + MIB, totalBytes: 10 * GIB }],
    ['of 10 GiB with 2 GiB free and an empty blob', true, { freeBytes: 2 * GIB, totalBytes: 10 * GIB }, 0],
    [
      'of 10 GiB with 2 GiB free and a blob of one byte',
      false,
      { freeBytes: 2 * GIB, totalBytes: 10 * GIB },
      1,
    ],
  ])('%s has enough space: %s', async (_what, isAccepted, space, expectedBytes = MIB) => {
    const { blobs, root } = await openStore(space)
    const staging = blobs.stage(chunksOf('x'), expectedBytes)
    if (isAccepted) expect((await staging).sizeBytes).toBe(1)
    else {
      await expect(staging).rejects.toMatchObject({ reason: 'storage_full' })
      expect(await readdir(join(root, 'incoming'))).toEqual([])
    }
  })

  test('that fills up aborts an upload of unknown length', async () => {
    const root = join(await makeFolder(), 'files')
    let left = 100 * GIB
    const blobs = await openLocalBlobs(root, async () => ({ freeBytes: left, totalBytes: 200 * GIB }))
    async function* endless(): AsyncIterable<Uint8Array> {
      for (;;) {
        left -= GIB
        yield Buffer.alloc(MIB)
      }
    }
    await expect(blobs.stage(endless())).rejects.toMatchObject({ reason: 'storage_full' })
    expect(await readdir(join(root, 'incoming'))).toEqual([])
  })

  test('that is full makes uploads return 507 and leave no file behind', async () => {
    const folder = await makeFolder()
    const space = { freeBytes: GIB, totalBytes: 10 * GIB }
    const fileBlobs = await openLocalBlobs(join(folder, 'files'), async () => space)
    const app = await startApp({}, { fileBlobs })
    const { status, body } = await upload(app)
    expect(status).toBe(507)
    expect(body.error).toMatchObject({ type: 'server_error', code: 'storage_full' })
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
    expect(await listStored(folder)).toEqual({ kept: [], incoming: [] })
  })
})

test('the error reason storage_full has status 507', () => {
  expect(new ServiceError('storage_full', 'Full.').status).toBe(507)
})

async function openLocalBlobs(root: string, readSpace?: ReadSpace): Promise<Blobs> {
  return toResumableStore(await openFolder(root, readSpace), true).blobs
}
