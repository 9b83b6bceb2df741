/** Tests SQLite connections, the supported SQLite versions, and how constraint violations are recognized. */
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { mapConstraintError, openDatabase } from '../../src/db/open.ts'
import { assertSqliteVersion } from '../../src/db/sqlite.ts'
import { listIds, openTestDatabase, parentKey } from '../support/database.ts'
import { makeFolder } from '../support/process.ts'

let dataDir: string

beforeEach(async () => {
  dataDir = join(await makeFolder(), 'data')
})

describe('a SQLite connection', () => {
  test('is configured for durable writes, foreign keys and an untrusted schema', async () => {
    const { db } = await openTestDatabase('server', dataDir)
    const setting = async (name: string) => {
      const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(db)
      return Object.values(rows[0] ?? {})[0]
    }
    expect(await setting('journal_mode')).toBe('wal')
    expect(await setting('synchronous')).toBe(2)
    expect(await setting('foreign_keys')).toBe(1)
    expect(await setting('cache_size')).toBe(-131_072)
    expect(await setting('trusted_schema')).toBe(0)
    expect(await setting('busy_timeout')).toBe(0)
    expect(await setting('wal_autocheckpoint')).toBe(1000)
    expect(await setting('journal_size_limit')).toBe(67_108_864)
  })

  test('moves the WAL into the database file when it is closed and can be closed repeatedly', async () => {
    const database = await openDatabase({ dataDir, role: 'server' })
    await database.db.insertInto('parent_keys').values(parentKey('kept')).execute()
    await Promise.all([database.close(), database.close()])
    await database.close()
    expect((await readdir(dataDir)).sort()).toEqual(['.lock', 'parley.db'])
    expect(await listIds(await openTestDatabase('server', dataDir))).toEqual(['kept'])
  })

  test('shares no data with other connections and creates no file in memory mode', async () => {
    const first = await openTestDatabase('server', ':memory:')
    const second = await openTestDatabase('command', ':memory:')
    await first.db.insertInto('parent_keys').values(parentKey('mine')).execute()
    expect(await listIds(first)).toEqual(['mine'])
    expect(await listIds(second)).toEqual([])
    expect(existsSync(':memory:')).toBe(false)
  })

  test('can run more distinct statements than its prepared-statement cache can hold', async () => {
    const { db } = await openTestDatabase('server', ':memory:')
    for (let length = 1; length <= 600; length++) {
      const ids = Array.from({ length }, (_, index) => `id-${index}`)
      await db.selectFrom('parent_keys').selectAll().where('id', 'in', ids).execute()
    }
    expect(await db.selectFrom('parent_keys').selectAll().where('id', 'in', ['id-0']).execute()).toEqual([])
  })

  test('rolls back a failed transaction and remains usable', async () => {
    const database = await openTestDatabase('server', ':memory:')
    const attempt = database.db.transaction().execute(async (trx) => {
      await trx.insertInto('parent_keys').values(parentKey('lost')).execute()
      throw new Error('transaction failed')
    })
    await expect(attempt).rejects.toThrow('transaction failed')
    await database.db.insertInto('parent_keys').values(parentKey('kept')).execute()
    expect(await listIds(database)).toEqual(['kept'])
  })

  test.each(['3.51.2', '3.9.0', '2.99.99'])('is rejected with SQLite %s', (version) => {
    expect(() => assertSqliteVersion(version)).toThrow(
      `SQLite ${version} is too old: version 3.51.3 or newer is required.`,
    )
  })

  test.each(['3.51.3', '3.51.10', '3.100.0', '4.0.0'])('is accepted with SQLite %s', (version) => {
    expect(() => assertSqliteVersion(version)).not.toThrow()
  })
})

describe('a constraint violation', () => {
  async function errorOf(insert: string): Promise<unknown> {
    const { db } = await openTestDatabase('server', ':memory:')
    await sql`create table things (id text primary key, name text not null unique, owner text references things (id))`.execute(
      db,
    )
    await sql`insert into things values ('a', 'one', null)`.execute(db)
    return sql
      .raw(`insert into things values ${insert}`)
      .execute(db)
      .then(
        () => 'no error',
        (error: unknown) => error,
      )
  }

  test.each([
    ['uniqueness of the primary key', `('a', 'two', null)`, 'unique'],
    ['uniqueness of another column', `('b', 'one', null)`, 'unique'],
    ['a foreign key', `('b', 'two', 'missing')`, 'foreign_key'],
    ['something else', `('b', null, null)`, undefined],
  ])('is mapped to its kind, or to undefined if the kind is unknown: %s', async (_, insert, kind) => {
    const error = await errorOf(insert)
    expect(error).toMatchObject({ code: expect.stringContaining('SQLITE_CONSTRAINT_') })
    expect(mapConstraintError(error)).toBe(kind)
  })

  test('is not reported for other errors', () => {
    expect(mapConstraintError(new Error('other'))).toBeUndefined()
    expect(mapConstraintError(undefined)).toBeUndefined()
  })

  test.each([
    ['23505', 'unique'],
    ['23503', 'foreign_key'],
    ['23502', undefined],
  ])('with the PostgreSQL code %s is reported as %s', (code, kind) => {
    expect(mapConstraintError(Object.assign(new Error('pg'), { code }))).toBe(kind)
  })
})
