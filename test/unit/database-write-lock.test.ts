/** Tests how statements wait for SQLite's write lock. */
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { disableBlockingWaits, openSqlite, toKysely } from '../../src/db/sqlite.ts'
import { toServiceError } from '../../src/lib/errors.ts'
import { openSqliteFile, openTestDatabase, parentKey } from '../support/database.ts'
import { makeFolder } from '../support/process.ts'

async function openLocked(patienceMs?: number) {
  const dataDir = await makeFolder()
  await (await openTestDatabase('server', dataDir)).close()
  const connection = openSqlite(join(dataDir, 'parley.db'))
  onTestFinished(() => void connection.close())
  disableBlockingWaits(connection)
  const other = openSqliteFile(dataDir)
  other.exec('begin immediate')
  const db = toKysely(connection, patienceMs)
  const insert = (id: string) => db.insertInto('parent_keys').values(parentKey(id)).execute()
  const insertInTransaction = (id: string) =>
    db.transaction().execute((trx) => trx.insertInto('parent_keys').values(parentKey(id)).execute())
  const listIds = async () =>
    (await db.selectFrom('parent_keys').select('id').orderBy('id').execute()).map(({ id }) => id)
  return { other, insert, insertInTransaction, listIds }
}

test('write statements and transactions wait for the write lock, but reads do not', async () => {
  const { other, insert, insertInTransaction, listIds } = await openLocked()
  const writes = [insert('1'), insertInTransaction('2'), insert('3'), insertInTransaction('4')]
  expect(await listIds()).toEqual([])
  other.exec('rollback')
  await Promise.all(writes)
  expect(await listIds()).toEqual(['1', '2', '3', '4'])
})

test('a write that waits too long fails with 503, and the connection remains usable', async () => {
  const { other, insert, insertInTransaction, listIds } = await openLocked(0)
  const results = await Promise.allSettled([insert('1'), insertInTransaction('2'), insert('3')])
  for (const result of results)
    expect(toServiceError((result as PromiseRejectedResult).reason).status).toBe(503)
  other.exec('rollback')
  await insertInTransaction('4')
  await insert('5')
  expect(await listIds()).toEqual(['4', '5'])
})

test.each(['SQLITE_BUSY_RECOVERY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_LOCKED_SHAREDCACHE'])(
  'the SQLite error %s is converted to a service error with status 503',
  (code) => {
    expect(toServiceError(Object.assign(new Error('locked'), { code })).status).toBe(503)
  },
)
