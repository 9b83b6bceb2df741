/** Tests the data directory's lock within one process. */
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

describe('the data directory lock', () => {
  test('prevents a second server in the same process, and the error names the first', async () => {
    await opened('server', dataDir)
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toBe(
      `Another Parley server (process ${process.pid}) is using the data directory ${dataDir}; stop it, or give this one its own PARLEY_DATA_DIR.`,
    )
  })

  test('is reported with a remedy when its file is damaged', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, '.lock'), 'not a database, '.repeat(100))
    expect(await refusal(openDatabase({ dataDir, role: 'server' }))).toMatch(
      /\.lock is not usable .*delete that file/,
    )
  })
})

describe('a command that runs next to a server', () => {
  test('reads what the server wrote, and the server reads what the command wrote', async () => {
    const server = await opened('server', dataDir)
    await server.db.insertInto('parent_keys').values(parentKey('from-server')).execute()
    const command = await opened('command', dataDir)
    await command.db.insertInto('parent_keys').values(parentKey('from-command')).execute()
    expect(await listIds(server)).toEqual(['from-command', 'from-server'])
    expect(await listIds(command)).toEqual(['from-command', 'from-server'])
  })

  test('does not acquire the lock', async () => {
    await (await opened('server', dataDir)).close()
    await opened('command', dataDir)
    expect(await listIds(await opened('server', dataDir))).toEqual([])
  })
})
