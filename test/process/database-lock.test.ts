/** Tests the lock that prevents two servers from using the same data directory. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'
import { listIds, openSqliteFile, openTestDatabase, parentKey, startupErrorOf } from '../support/database.ts'
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

describe('the data directory lock', () => {
  test('is still held after another server is rejected', async () => {
    await openTestDatabase('server', dataDir)
    await startupErrorOf(openDatabase({ dataDir, role: 'server' }))
    expect(await new OtherProcess(openScript('server', dataDir)).hears()).toContain(
      `(process ${process.pid})`,
    )
  })

  test('rejects a second server until its holder, a server in another process, is killed', async () => {
    const first = new OtherProcess(openScript('server', dataDir))
    expect(await first.hears()).toBe('open')
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'server' }))).toContain(
      `Another Parley server (process ${first.child.pid})`,
    )
    await first.kill()
    expect(await listIds(await openTestDatabase('server', dataDir))).toEqual([])
  })

  test('is released on close', async () => {
    await (await openTestDatabase('server', dataDir)).close()
    const next = new OtherProcess(openScript('server', dataDir))
    expect(await next.hears()).toBe('open')
  })

  test('is released when the server fails to start', async () => {
    await (await openTestDatabase('server', dataDir)).close()
    openSqliteFile(dataDir).exec(`insert into kysely_migration values ('9999_from_the_future', '')`)
    await startupErrorOf(openDatabase({ dataDir, role: 'server' }))
    const next = new OtherProcess(openScript('server', dataDir))
    expect(await next.hears()).toContain('9999_from_the_future')
  })

  test('is acquired by exactly one of four processes that start concurrently', async () => {
    const starters = Array.from(
      { length: 4 },
      () =>
        new OtherProcess(`
          import { once } from 'node:events'
          import { openDatabase } from ${source('db/open.ts')}
          console.log('ready')
          await once(process.stdin, 'data')
          await openDatabase({ dataDir: ${JSON.stringify(dataDir)}, role: 'server' })
            .then(() => console.log('open'), (error) => console.log(error.name + ': ' + error.message))
          setInterval(() => {}, 1000)
        `),
    )
    for (const starter of starters) expect(await starter.hears()).toBe('ready')
    for (const starter of starters) starter.say('go')
    const heard = await Promise.all(starters.map((starter) => starter.hears()))
    expect(heard.filter((line) => line === 'open')).toHaveLength(1)
    const rejected = heard.filter((line) => line.startsWith('StartupError: Another Parley server'))
    expect(rejected).toHaveLength(3)
  })

  test('never has two holders while three processes repeatedly acquire and release it', async () => {
    await mkdir(dataDir)
    const contender = `
      import { closeSync, openSync, unlinkSync } from 'node:fs'
      import { acquireLock } from ${source('db/lock.ts')}
      const witness = ${JSON.stringify(join(folder, 'witness'))}
      let held = 0
      while (held < 20) {
        let lock
        try { lock = acquireLock(${JSON.stringify(dataDir)}) } catch (error) {
          if (error.name !== 'StartupError' || !error.message.startsWith('Another')) throw error
          continue
        }
        closeSync(openSync(witness, 'wx'))
        unlinkSync(witness)
        lock.release()
        held++
      }
      console.log('had its turns')
    `
    const contenders = [new OtherProcess(contender), new OtherProcess(contender), new OtherProcess(contender)]
    expect(await Promise.all(contenders.map((one) => one.hears()))).toEqual(Array(3).fill('had its turns'))
  })
})

describe('a command that runs while a server runs', () => {
  test('waits for the write lock when its transactions read before they write', async () => {
    const server = await openTestDatabase('server', dataDir)
    const writer = new OtherProcess(`
      import { openDatabase } from ${source('db/open.ts')}
      const { db, close } = await openDatabase({ dataDir: ${JSON.stringify(dataDir)}, role: 'command' })
      console.log('open')
      for (let turn = 0; turn < 20; turn++) {
        await db.transaction().execute(async (trx) => {
          await trx.selectFrom('parent_keys').selectAll().execute()
          await trx.insertInto('parent_keys')
            .values({ id: 'command-' + turn, name: '', hint: '', created_at: 1 }).execute()
        })
      }
      await close()
      console.log('done')
    `)
    expect(await writer.hears()).toBe('open')
    for (let turn = 0; turn < 20; turn++) {
      await server.db.transaction().execute(async (trx) => {
        await trx.selectFrom('parent_keys').selectAll().execute()
        await trx
          .insertInto('parent_keys')
          .values(parentKey(`server-${turn}`))
          .execute()
      })
    }
    expect(await writer.hears()).toBe('done')
    expect(await listIds(server)).toHaveLength(40)
  })
})
