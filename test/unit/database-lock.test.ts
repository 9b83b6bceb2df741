/** Tests that only one server can use a data directory, while commands can share it. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'
import { listIds, openTestDatabase, parentKey, startupErrorOf } from '../support/database.ts'
import { makeFolder } from '../support/process.ts'

let folder: string
let dataDir: string

beforeEach(async () => {
  folder = await makeFolder()
  dataDir = join(folder, 'data')
})

describe('the data directory lock', () => {
  test("prevents a second server from starting, with an error that contains the first server's process id", async () => {
    await openTestDatabase('server', dataDir)
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toBe(
      `Another Parley server (process ${process.pid}) is using the data directory ${dataDir}; stop it, or give this one its own PARLEY_DATA_DIR.`,
    )
  })

  test('prevents a start with an error that suggests deleting its file if the file is damaged', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, '.lock'), 'not a database, '.repeat(100))
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toMatch(
      /\.lock is not usable .*delete that file/,
    )
  })
})

describe('a command', () => {
  test("and a running server can read each other's writes", async () => {
    const server = await openTestDatabase('server', dataDir)
    await server.db.insertInto('parent_keys').values(parentKey('from-server')).execute()
    const command = await openTestDatabase('command', dataDir)
    await command.db.insertInto('parent_keys').values(parentKey('from-command')).execute()
    expect(await listIds(server)).toEqual(['from-command', 'from-server'])
    expect(await listIds(command)).toEqual(['from-command', 'from-server'])
  })

  test('does not acquire the lock, so that a server can start', async () => {
    await (await openTestDatabase('server', dataDir)).close()
    await openTestDatabase('command', dataDir)
    expect(await listIds(await openTestDatabase('server', dataDir))).toEqual([])
  })
})
