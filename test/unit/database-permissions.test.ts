/** Tests which permissions of a data directory are reported as too broad. */
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'
import { listPermissionProblems } from '../../src/db/permissions.ts'
import { startApp } from '../support/app.ts'
import { makeFolder } from '../support/process.ts'

async function createDataDirectory(): Promise<string> {
  const dataDir = join(await makeFolder(), 'data')
  await (await openDatabase({ dataDir, role: 'server' })).close()
  return dataDir
}

test('the permission check accepts a new data directory and memory mode', async () => {
  const dataDir = join(await makeFolder(), 'data')
  const app = await startApp({ PARLEY_DATA_DIR: dataDir })
  await app.createAgent()
  expect(await listPermissionProblems(dataDir)).toEqual([])
  expect(await listPermissionProblems(':memory:')).toEqual([])
})

test.each([0o770, 0o707, 0o777])(
  'the permission check reports a directory that other users can write to (case %#)',
  async (mode) => {
    const dataDir = await createDataDirectory()
    await chmod(dataDir, mode)
    expect(await listPermissionProblems(dataDir)).toEqual([
      `other users of this machine can write to ${dataDir}; run \`chmod 700\` on it`,
    ])
  },
)

test('the permission check reports a readable file if other users can access its directory', async () => {
  const dataDir = await createDataDirectory()
  const path = join(dataDir, 'parley.db')
  await chmod(path, 0o644)
  expect(await listPermissionProblems(dataDir)).toEqual([])
  await chmod(dataDir, 0o755)
  expect(await listPermissionProblems(dataDir)).toEqual([
    `other users of this machine can read or change ${path} (mode 644); run \`chmod 600\` on it`,
  ])
})
