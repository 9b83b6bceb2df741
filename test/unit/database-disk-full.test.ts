/** Tests that a full disk fails only the current transaction and does not damage the database. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/db/open.ts'

test('a transaction that fills the disk fails with SQLITE_FULL, and a smaller one succeeds afterwards', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'parley-full-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const { db, close } = await openDatabase({ dataDir: join(folder, 'data'), role: 'server' })
  onTestFinished(close)
  const insert = (id: string, name: string) =>
    db
      .transaction()
      .execute((trx) => trx.insertInto('parent_keys').values({ id, name, hint: '', created_at: 1 }).execute())
  await insert('before', 'small')
  // SQLite reports the same error for a full disk and for a database at its maximum size.
  await sql`pragma max_page_count = 1`.execute(db)
  await expect(insert('large', 'n'.repeat(1_000_000))).rejects.toMatchObject({ code: 'SQLITE_FULL' })
  await insert('after', 'small')
  const rows = await db.selectFrom('parent_keys').select('id').orderBy('id').execute()
  expect(rows).toEqual([{ id: 'after' }, { id: 'before' }])
})
