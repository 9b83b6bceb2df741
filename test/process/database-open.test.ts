/**
 * Tests that a server rejects a data directory with insufficient permissions, and keeps its data when it is
 * killed.
 */

import { spawnSync } from 'node:child_process'
import { chmod, mkdir, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'
import { listIds, openTestDatabase, startupErrorOf } from '../support/database.ts'
import { OtherProcess, openScript, source } from '../support/other-process.ts'
import { makeFolder } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 30_000 })

let folder: string
let dataDir: string

beforeEach(async () => {
  folder = await makeFolder()
  dataDir = join(folder, 'data')
})

describe('an unusable data directory', () => {
  const isRoot = process.getuid?.() === 0
  const hasSetpriv = spawnSync('setpriv', ['--version']).status === 0
  const asNobody = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []

  test.skipIf(isRoot && !hasSetpriv)(
    'causes an error that contains its path and the current user if it is not writable',
    async () => {
      await chmod(folder, 0o755)
      await mkdir(dataDir)
      await chmod(dataDir, 0o555)
      const heard = await new OtherProcess(openScript('server', dataDir), asNobody).hears()
      expect(heard).toMatch(/^StartupError: The data directory \S+ is not usable by .*uid \d+.* \(EACCES\)/)
      expect(heard).toContain(`directory ${dataDir} `)
      if (isRoot) expect(heard).toContain('uid 65534')
      expect(await readdir(dataDir)).toEqual([])
    },
  )

  test.skipIf(isRoot && !hasSetpriv)(
    'causes an error that contains its path if it does not exist and cannot be created',
    async () => {
      await chmod(folder, 0o555)
      onTestFinished(() => chmod(folder, 0o700))
      const heard = await new OtherProcess(openScript('server', dataDir), asNobody).hears()
      expect(heard).toContain(`StartupError: The data directory ${dataDir} is not usable by`)
    },
  )

  test.skipIf(isRoot && !hasSetpriv)(
    'is rejected if the current user can only read the database file',
    async () => {
      await (await openTestDatabase('server', dataDir)).close()
      await chmod(folder, 0o755)
      await chmod(dataDir, 0o777)
      await chmod(join(dataDir, '.lock'), 0o666)
      await chmod(join(dataDir, 'parley.db'), 0o444)
      const refused = `StartupError: The database ${join(dataDir, 'parley.db')} is not usable by`
      expect(await new OtherProcess(openScript('server', dataDir), asNobody).hears()).toContain(refused)
      expect(await new OtherProcess(openScript('command', dataDir), asNobody).hears()).toContain(refused)
    },
  )
})

describe('after a server is killed', () => {
  /** A script that writes one row to the database file and one only to the WAL, and does not exit. */
  const writer = () => `
    import Sqlite from ${JSON.stringify(join(import.meta.dirname, '../../node_modules/better-sqlite3/lib/index.js'))}
    import { openDatabase } from ${source('db/open.ts')}
    const dataDir = ${JSON.stringify(dataDir)}
    const { db } = await openDatabase({ dataDir, role: 'server' })
    const insert = (id) => db.insertInto('parent_keys').values({ id, name: '', hint: '', created_at: 1 }).execute()
    await insert('early')
    const other = new Sqlite(dataDir + '/parley.db')
    other.pragma('wal_checkpoint(TRUNCATE)')
    other.close()
    await insert('late')
    console.log('written')
    setInterval(() => {}, 1000)
  `

  test('every acknowledged row is in the database', async () => {
    const server = new OtherProcess(writer())
    expect(await server.hears()).toBe('written')
    await server.kill()
    expect(await listIds(await openTestDatabase('server', dataDir))).toEqual(['early', 'late'])
  })

  test('the next start detects a damaged page of an unused index', async () => {
    const server = new OtherProcess(writer())
    expect(await server.hears()).toBe('written')
    const reader = new Sqlite(join(dataDir, 'parley.db'), { readonly: true })
    const page = reader
      .prepare(`select rootpage from sqlite_schema where name = 'agents_by_owner'`)
      .pluck()
      .get()
    reader.close()
    await server.kill()
    const file = await open(join(dataDir, 'parley.db'), 'r+')
    await file.write(Buffer.alloc(4096, 0xaa), 0, 4096, (Number(page) - 1) * 4096)
    await file.close()
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toMatch(
      /parley\.db is damaged \(.+\); restore it from a backup\.$/,
    )
  })
})
