/**
 * Tests the files of resumable uploads in the local store, including while a writer without the lease
 * still writes.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ResumableStore } from '../../../src/storage/blobs.ts'
import { openResumableStore } from '../../../src/storage/local.ts'
import { makeFolder } from '../../support/process.ts'
import { UploadRow } from '../../support/resumable-rows.ts'

const KIB = 1024

async function openStore(): Promise<{
  store: ResumableStore
  row: UploadRow
  list: () => Promise<string[]>
}> {
  const folder = await makeFolder()
  const store = await openResumableStore(folder, 'artifacts', true)
  const list = () => readdir(join(folder, 'artifacts', 'growing'))
  return { store, row: new UploadRow(store), list }
}

describe('a stale writer', () => {
  test('cannot change the upload through a file that it has already opened', async () => {
    const { row } = await openStore()
    const bytes = randomBytes(100 * KIB)
    await row.add(bytes.subarray(0, 40 * KIB))
    const stale = await row.lease()
    await stale.append(bytes.subarray(40 * KIB, 50 * KIB))
    const next = await row.lease()
    await next.write(bytes.subarray(40 * KIB, 70 * KIB))
    await stale.append(Buffer.alloc(40 * KIB, 'x'))
    await next.write(bytes.subarray(70 * KIB))
    await next.sync()
    await stale.append(Buffer.alloc(40 * KIB, 'x'))
    await expect(stale.sync()).rejects.toThrow('another')
    for (const { blob } of [stale, next]) await blob.close()
    expect((await row.finish()).equals(bytes)).toBe(true)
  })

  test('does not truncate the upload if it opens the file late', async () => {
    const { store, row } = await openStore()
    const bytes = randomBytes(50 * KIB)
    row.fence = 1
    await row.add(bytes)
    const stale = await store.resumable.extend(row.name, 0, 1)
    await stale?.append([Buffer.alloc(10, 'x')])
    await stale?.close()
    expect(await store.resumable.findSize(row.name)).toBe(bytes.length)
    expect((await row.finish()).equals(bytes)).toBe(true)
  })

  test('cannot continue an upload after the next writer has opened it', async () => {
    const { store, row } = await openStore()
    const bytes = randomBytes(50 * KIB)
    await row.add(bytes.subarray(0, 20 * KIB))
    row.fence += 1
    await row.add(bytes.subarray(20 * KIB))
    expect(await store.resumable.extend(row.name, 20 * KIB, 2, true)).toBe(undefined)
    expect((await row.finish()).equals(bytes)).toBe(true)
  })
})

describe('an active upload', () => {
  test('consists of one file, even if a writer did not release it', async () => {
    const { store, row, list } = await openStore()
    await row.add(Buffer.from('one'))
    const copied = await row.lease()
    expect(await list()).toEqual([`${row.name}.2`])
    await copied.blob.close()
    row.fence += 1
    const taken = await store.resumable.extend(row.name, 3, row.fence, true)
    await taken?.close()
    expect(await list()).toEqual([`${row.name}.3`])
  })

  test('continues in the same file after a restore or an update from an older version', async () => {
    const { store, row, list } = await openStore()
    await row.add(Buffer.from('one'))
    const [file = ''] = await list()
    const folder = join((await store.blobs.findPath?.('growing')) ?? '')
    await rename(join(folder, file), join(folder, row.name))
    row.fence = 7
    await row.add(Buffer.from(' two'))
    expect(await list()).toEqual([`${row.name}.8`])
    expect((await row.finish()).toString()).toBe('one two')
  })

  test('is listed under its own name, and deleting it removes all of its files', async () => {
    const { store, row, list } = await openStore()
    await row.add(Buffer.from('one'))
    const folder = join((await store.blobs.findPath?.('growing')) ?? '')
    const other = randomUUID()
    for (const file of [`${row.name}.9.copy`, row.name, other]) await writeFile(join(folder, file), 'x')
    const names = new Set<string>()
    for await (const { name } of store.resumable.list()) names.add(name)
    expect(names).toEqual(new Set([row.name, other]))
    await store.resumable.delete(row.name)
    expect(await list()).toEqual([other])
  })

  test('is not committed with fewer bytes than its database row records', async () => {
    const { store, row } = await openStore()
    await row.add(Buffer.from('one'))
    await expect(store.resumable.commit(row.name, 4)).rejects.toThrow('has 3 bytes instead of 4')
    await store.resumable.commit(row.name, 3)
    const path = (await store.blobs.findPath?.(row.name)) ?? ''
    expect(await readFile(path, 'utf8')).toBe('one')
    // A second commit must succeed because the process may have crashed after moving the file.
    await store.resumable.commit(row.name, 3)
  })
})
