/** Tests that only servers apply migrations, and that either all of them or none take effect. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Migration, sql } from 'kysely'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { applyMigrations, listPendingMigrations } from '../../src/db/migrate.ts'
import { migrations } from '../../src/db/migrations/index.ts'
import { openDatabase } from '../../src/db/open.ts'
import { openSqlite, toKysely } from '../../src/db/sqlite.ts'
import { listIds, openSqliteFile, openTestDatabase, startupErrorOf } from '../support/database.ts'
import {
  insertOldBudgets,
  listMigratedBudgets,
  migratedBudgets,
  oldMigrations,
} from '../support/old-budgets.ts'
import { makeFolder } from '../support/process.ts'

let dataDir: string

beforeEach(async () => {
  dataDir = join(await makeFolder(), 'data')
})

describe('SQLite migrations', () => {
  test('are all applied when a server opens the database', async () => {
    const { db } = await openTestDatabase('server', dataDir)
    expect(await listPendingMigrations(db, migrations)).toEqual([])
  })

  test('that this version does not recognize prevent servers and commands from opening the database', async () => {
    await (await openTestDatabase('server', dataDir)).close()
    openSqliteFile(dataDir).exec(`insert into kysely_migration values ('9999_from_the_future', '')`)
    for (const role of ['server', 'command'] as const) {
      expect(await startupErrorOf(openDatabase({ dataDir, role }))).toContain(
        'written by a different version of Parley (its migration 9999_from_the_future is unknown to this version)',
      )
    }
  })

  test('that are pending prevent commands, but not servers, from opening the database', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'parley.db'), '')
    openSqliteFile(dataDir).exec('create table unrelated (id text)')
    expect(await startupErrorOf(openDatabase({ dataDir, role: 'command' }))).toContain(
      'missing migrations: 0001_create_keys_and_agents',
    )
    expect(openSqliteFile(dataDir).prepare('select name from sqlite_schema').all()).toEqual([
      { name: 'unrelated' },
    ])
    expect(await listIds(await openTestDatabase('server', dataDir))).toEqual([])
  })

  test('do not change the database if one of them fails, even after earlier ones in the same run', async () => {
    const connection = openSqlite(':memory:')
    onTestFinished(() => void connection.close())
    const db = toKysely(connection)
    const steps: Record<string, Migration> = {
      '0001_create_a': { up: (on) => on.schema.createTable('a').addColumn('id', 'text').execute() },
      '0002_fail': {
        up: async (on) => {
          await on.schema.createTable('b').addColumn('id', 'text').execute()
          throw new Error('migration failed on purpose')
        },
      },
    }
    expect(await startupErrorOf(applyMigrations(connection, db, steps))).toContain(
      'Migration 0002_fail failed',
    )
    expect(connection.prepare('select name from sqlite_schema').all()).toEqual([])
    expect(connection.pragma('foreign_keys', { simple: true })).toBe(1)
  })

  test('keep token budgets and the tokens used, and book the reservations of running calls', async () => {
    const connection = openSqlite(':memory:')
    onTestFinished(() => void connection.close())
    const db = toKysely(connection)
    await applyMigrations(connection, db, oldMigrations)
    await insertOldBudgets(db)
    await applyMigrations(connection, db, migrations)
    expect(await listMigratedBudgets(db)).toEqual(migratedBudgets)
  })

  test('may rebuild a referenced table but fail if they leave a broken reference', async () => {
    const connection = openSqlite(':memory:')
    onTestFinished(() => void connection.close())
    const db = toKysely(connection)
    const create: Migration = {
      up: async (on) => {
        await sql`create table parent (id text primary key)`.execute(on)
        await sql`create table child (id text references parent (id) on delete cascade)`.execute(on)
        await sql`insert into parent values ('p')`.execute(on)
        await sql`insert into child values ('p')`.execute(on)
      },
    }
    const rebuild: Migration = {
      up: async (on) => {
        await sql`create table new_parent (id text primary key, name text)`.execute(on)
        await sql`insert into new_parent select id, '' from parent`.execute(on)
        await sql`drop table parent`.execute(on)
        await sql`alter table new_parent rename to parent`.execute(on)
      },
    }
    const lose: Migration = { up: async (on) => void (await sql`delete from parent`.execute(on)) }
    await applyMigrations(connection, db, { '1_create': create, '2_rebuild': rebuild })
    expect(connection.prepare('select * from child').all()).toEqual([{ id: 'p' }])
    expect(
      await startupErrorOf(
        applyMigrations(connection, db, { '1_create': create, '2_rebuild': rebuild, '3_lose': lose }),
      ),
    ).toContain('broken reference')
    expect(connection.prepare('select id from parent').all()).toEqual([{ id: 'p' }])
  })
})
