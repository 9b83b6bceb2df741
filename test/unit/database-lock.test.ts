/** The lock of the data directory within one process. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'
import { listIds, opened, parentKey, refusal } from '../support/database.ts'
import { makeFolder } from '../support/process.ts'

let folder: string
let dataDir: string

beforeEach(async () => {
  folder = await makeFolder()
  dataDir = join(folder, 'data')
})

describe('the lock', () => {
  test('refuses a second server of the same process with a sentence that names it', async () => {
    await opened('server', dataDir)
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toBe(
      `Another Parley server (process ${process.pid}) is using the data directory ${dataDir}; stop it, or give this one its own PARLEY_DATA_DIR.`,
    )
  })

  test('that is damaged is reported with what to do', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, '.lock'), 'not a database, '.repeat(100))
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toMatch(
      /\.lock is not usable .*delete that file/,
    )
  })
})

describe('a command beside a server', () => {
  test('sees what the server wrote and the other way round', async () => {
    const server = await opened('server', dataDir)
    await server.db.insertInto('parent_keys').values(parentKey('from-server')).execute()
    const command = await opened('command', dataDir)
    await command.db.insertInto('parent_keys').values(parentKey('from-command')).execute()
    expect(await listIds(server)).toEqual(['from-command', 'from-server'])
    expect(await listIds(command)).toEqual(['from-command', 'from-server'])
  })

  test('takes no lock', async () => {
    await (await opened('server', dataDir)).close()
    await opened('command', dataDir)
    expect(await listIds(await opened('server', dataDir))).toEqual([])
  })
})
