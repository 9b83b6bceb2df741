/** Tests that a rejected restore leaves the directory unchanged. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { acquireLock } from '../../../src/db/lock.ts'
import { openDatabase } from '../../../src/db/open.ts'
import { openApp } from '../../support/app.ts'
import { backUp, readEntries, restoreArchive, writeArchive } from '../../support/backup.ts'
import { openTestDatabase, parentKey, startupErrorOf } from '../../support/database.ts'
import { upload } from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A backup of an installation with one file. */
let archived: Buffer
let entries: Map<string, Buffer>
let folder: string
let dataDir: string
let archive: string

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'parley-archive-'))
  const app = await openApp({ PARLEY_DATA_DIR: join(folder, 'data') })
  await upload(app)
  await backUp(join(folder, 'data'), join(folder, 'backup.tar'))
  await app.close()
  archived = await readFile(join(folder, 'backup.tar'))
  entries = await readEntries(join(folder, 'backup.tar'))
  return () => rm(folder, { recursive: true })
})

beforeEach(async () => {
  folder = await makeFolder()
  dataDir = join(folder, 'data')
  archive = join(folder, 'backup.tar')
  await writeFile(archive, archived)
})

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** Writes a modified archive with a matching manifest and checksum, as an attacker would. */
async function forge(
  change: (entries: Map<string, Buffer>) => void,
  changeManifest: (manifest: Record<string, unknown>) => void = () => {},
): Promise<void> {
  const changed = new Map(entries)
  const manifest = JSON.parse(String(changed.get('manifest.json')))
  for (const name of ['manifest.json', 'manifest.sha256']) changed.delete(name)
  change(changed)
  manifest.entries = [...changed].map(([name, bytes]) => ({
    name,
    size: bytes.length,
    sha256: sha256(bytes),
  }))
  changeManifest(manifest)
  const text = Buffer.from(JSON.stringify(manifest))
  const seal = Buffer.from(`${sha256(text)}  manifest.json\n`)
  await writeArchive(archive, [...changed, ['manifest.json', text], ['manifest.sha256', seal]])
}

const findBlobName = () => [...entries.keys()].find((name) => name.startsWith('files/')) as string

async function expectRefused(words: string | RegExp, env = {}): Promise<void> {
  const before = existsSync(dataDir) ? await readdir(dataDir, { recursive: true }) : undefined
  const message = await startupErrorOf(restoreArchive(archive, dataDir, env))
  expect(message).toMatch(words)
  expect(existsSync(dataDir)).toBe(before !== undefined)
  const after = before && (await readdir(dataDir, { recursive: true })).filter((name) => name !== '.lock')
  expect(after?.sort()).toEqual(before?.filter((name) => name !== '.lock').sort())
}

test('restoring an unmodified archive succeeds', async () => {
  await forge(() => {})
  await restoreArchive(archive, dataDir)
  expect((await readdir(dataDir)).sort()).toEqual(['.lock', 'artifacts', 'files', 'parley.db', 'secret'])
  for (const name of ['', 'files', 'artifacts'])
    expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o700)
  for (const name of ['parley.db', 'secret', findBlobName()])
    expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o600)
  await (await openDatabase({ dataDir, role: 'server' })).close()
})

describe('a restore into a directory', () => {
  test('fails if the directory contains a database, whether or not the database is open', async () => {
    const database = await openTestDatabase('server', dataDir)
    await database.db.insertInto('parent_keys').values(parentKey('mine')).execute()
    await expectRefused('contains a Parley database')
    await database.close()
    await expectRefused('contains a Parley database')
  })

  test('fails if the directory contains other files', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'thesis.odt'), '')
    await expectRefused('contains other files (such as thesis.odt)')
    await mkdir(join(dataDir, '.restore'))
    await expectRefused('contains other files (such as thesis.odt)')
  })

  test('fails while another process locks the directory', async () => {
    await mkdir(dataDir)
    const lock = acquireLock(dataDir)
    onTestFinished(() => lock.release())
    await expectRefused('Another process is using the data directory')
  })

  test('fails if the directory contains a different secret, but not if it contains the same secret or lost+found', async () => {
    await mkdir(join(dataDir, 'lost+found'), { recursive: true })
    await writeFile(join(dataDir, 'secret'), 'another secret of at least 32 bytes')
    await expectRefused('contains a different secret than the archive')
    await writeFile(join(dataDir, 'secret'), String(entries.get('secret')).trim())
    await restoreArchive(archive, dataDir)
    expect(await readdir(dataDir)).toContain('parley.db')
  })

  test('removes the leftovers of a restore that was killed', async () => {
    for (const left of ['.restore/parley.db', 'files/left', '.restore/artifacts/left']) {
      await mkdir(join(dataDir, left, '..'), { recursive: true })
      await writeFile(join(dataDir, left), '')
    }
    // A server cannot start in this directory until the restore has finished.
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toContain(
      'but no Parley database',
    )
    await restoreArchive(archive, dataDir)
    expect(await readdir(dataDir, { recursive: true })).not.toContain('files/left')
    expect(await readdir(dataDir)).not.toContain('.restore')
  })

  test('fails if PARLEY_DATA_DIR is :memory: or DATABASE_URL is set', async () => {
    expect(await startupErrorOf(restoreArchive(archive, ':memory:'))).toContain('PARLEY_DATA_DIR is :memory:')
    await expectRefused('store copy', { DATABASE_URL: 'postgres://parley@127.0.0.1:1/parley' })
  })
})

describe('a restore', () => {
  test('fails if the archive is truncated', async () => {
    const ends = [
      0,
      1,
      511,
      512,
      700,
      4_096,
      archived.length / 2,
      archived.length - 1_025,
      archived.length - 1,
    ]
    for (const end of ends) {
      await writeFile(archive, archived.subarray(0, Math.floor(end)))
      await expectRefused(/is truncated|was changed/)
    }
  })

  test('fails if a byte of the archive was changed', async () => {
    const places = [0, 100, 560, 3_000, archived.length / 2, archived.length - 2_000, archived.length - 1_500]
    for (const place of places.map(Math.floor)) {
      const changed = Buffer.from(archived)
      changed[place] = (changed[place] as number) ^ 0x01
      await writeFile(archive, changed)
      await expectRefused('The archive is not usable')
    }
  })

  test('fails if data other than zeros follows the archive', async () => {
    await writeFile(archive, Buffer.concat([archived, Buffer.from('more')]))
    await expectRefused('contains data after its end')
    await writeFile(archive, Buffer.concat([archived, Buffer.alloc(9_000)]))
    await restoreArchive(archive, dataDir)
  })

  test('fails if the file is not an archive', async () => {
    await writeFile(archive, 'This is a letter.'.repeat(1_000))
    await expectRefused('it is not a tar archive')
    await writeFile(archive, Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]))
    await expectRefused('The archive is not usable')
  })

  test.each([
    '../escape',
    '/etc/passwd',
    'files/../../escape',
    'files/name',
    'parley.db-wal',
    'files',
    '.lock',
  ])('is rejected if an entry has the name %s', async (name) => {
    await forge((all) => all.set(name, Buffer.from('hello')))
    await expectRefused('which is not part of a Parley backup')
    expect((await readdir(folder)).sort()).toEqual(['backup.tar'])
  })

  test('fails if the archive contains a duplicate entry', async () => {
    const list = [...entries]
    await writeArchive(archive, [...list.slice(0, 2), list[1] as (typeof list)[0], ...list.slice(2)])
    await expectRefused('twice')
  })

  test("fails if the archive's format or database version is newer", async () => {
    const write = (change: object) =>
      forge((all) => {
        const head = { ...JSON.parse(String(all.get('parley-backup.json'))), ...change }
        all.set('parley-backup.json', Buffer.from(JSON.stringify(head)))
      })
    await write({ format: 3 })
    await expectRefused('written by a newer version of Parley')
    await write({ schema: '9999_from_the_future' })
    await expectRefused('written by a newer version of Parley')
  })

  test('fails if bytes or rows are missing from the archive', async () => {
    await forge((all) => all.delete(findBlobName()))
    await expectRefused('a row refers to the file')
    await forge((all) => all.set(findBlobName(), Buffer.from('shorter')))
    await expectRefused('a row refers to the file')
    await forge(
      () => {},
      (manifest) => Object.assign(manifest.rows as object, { agents: 7 }),
    )
    await expectRefused('the table agents has 0 rows, not 7')
    await forge((all) => all.delete('parley.db'))
    await expectRefused('it contains no database')
  })

  test("fails if the archive's database is damaged", async () => {
    await forge((all) => {
      const database = Buffer.from(all.get('parley.db') as Buffer)
      all.set('parley.db', database.fill(0xff, database.length - 5 * 4_096))
    })
    await expectRefused('is damaged')
  })

  test('fails if the archive does not exist', async () => {
    await expect(restoreArchive(join(folder, 'nowhere.tar'), dataDir)).rejects.toThrow('ENOENT')
    expect(existsSync(dataDir)).toBe(false)
  })

  test('fails if reading the input stream fails', async () => {
    const failing = Readable.from(
      (async function* () {
        yield archived.subarray(0, 2_000)
        throw new Error('the connection is lost')
      })(),
    )
    await expect(restoreArchive(failing, dataDir)).rejects.toThrow('the connection is lost')
    expect(existsSync(dataDir)).toBe(false)
  })
})
