/** Tests that processes that start at the same time use the same server secret. */
import { randomBytes } from 'node:crypto'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { loadOrCreateSecret } from '../../src/db/data-directory.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { makeFolder } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 30_000 })

let dataDir: string

beforeEach(async () => {
  dataDir = join(await makeFolder(), 'data')
  await mkdir(dataDir)
})

describe('the server secret', () => {
  test('is the same for concurrent callers in one process and in several', async () => {
    const asker = `
      import { randomBytes } from 'node:crypto'
      import { once } from 'node:events'
      import { loadOrCreateSecret } from ${source('db/data-directory.ts')}
      console.log('ready')
      await once(process.stdin, 'data')
      console.log(await loadOrCreateSecret(${JSON.stringify(dataDir)}, randomBytes))
      process.exit()
    `
    const others = [new OtherProcess(asker), new OtherProcess(asker)]
    for (const other of others) expect(await other.hears()).toBe('ready')
    for (const other of others) other.say('go')
    const here = Array.from({ length: 8 }, () => loadOrCreateSecret(dataDir, randomBytes))
    const secrets = await Promise.all([...here, ...others.map((other) => other.hears())])
    expect(new Set(secrets).size).toBe(1)
    expect(await readdir(dataDir)).toEqual(['secret'])
  })
})
