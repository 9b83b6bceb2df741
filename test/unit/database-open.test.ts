/** Tests which data directories can be opened and which are rejected. */

import { existsSync } from 'node:fs'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'
import { listIds, openTestDatabase, startupErrorOf } from '../support/database.ts'
import { makeFolder } from '../support/process.ts'

let folder: string
let dataDir: string

beforeEach(async () => {
  folder = await makeFolder()
  dataDir = join(folder, 'data')
})

describe('the first start in a data directory', () => {
  test('creates the directory and the database with access only for the current OS user', async () => {
    const database = await openTestDatabase('server', join(dataDir, 'deep', 'down'))
    expect(await listIds(database)).toEqual([])
    expect((await stat(join(dataDir, 'deep', 'down'))).mode & 0o777).toBe(0o700)
    for (const name of ['parley.db', 'parley.db-wal', '.lock']) {
      expect((await stat(join(dataDir, 'deep', 'down', name))).mode & 0o777).toBe(0o600)
    }
  })

  test('accepts a directory with a secret, a lock and lost+found', async () => {
    await mkdir(join(dataDir, 'lost+found'), { recursive: true })
    await writeFile(join(dataDir, 'secret'), 'x'.repeat(32))
    await writeFile(join(dataDir, '.lock'), '')
    expect(await listIds(await openTestDatabase('server', dataDir))).toEqual([])
  })

  test('rejects a directory with other files and does not change it', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'holiday.jpg'), '')
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toContain(
      `${dataDir} contains other files (such as holiday.jpg) but no Parley database`,
    )
    expect(await readdir(dataDir)).toEqual(['holiday.jpg'])
  })

  test('does not prevent other files from being added later', async () => {
    await (await openTestDatabase('server', dataDir)).close()
    await mkdir(join(dataDir, 'files'))
    expect(await listIds(await openTestDatabase('server', dataDir))).toEqual([])
  })

  test('rejects a path that is a file', async () => {
    await writeFile(dataDir, '')
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toContain(
      `${dataDir} is not usable by`,
    )
  })
})

test('a command fails if the data directory does not exist, and does not create the directory', async () => {
  expect(await startupErrorOf(openDatabase({ dataDir, role: 'command' }))).toContain(
    `There is no Parley database in ${dataDir} yet`,
  )
  expect(existsSync(dataDir)).toBe(false)
})

describe('a file that is not a database', () => {
  test('is reported as a damaged database', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'parley.db'), 'not a database, '.repeat(1000))
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toContain('parley.db is damaged')
  })
})
