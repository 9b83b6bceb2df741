/** Tests how a server opens a PostgreSQL database, and the errors for databases that it rejects. */

import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Migration, sql } from 'kysely'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import { conversationMigrations } from '../../src/db/conversations/migrations.ts'
import { applyPostgresMigrations, listPendingMigrations } from '../../src/db/migrate.ts'
import { migrations as mainMigrations } from '../../src/db/migrations/index.ts'
import { openDatabase } from '../../src/db/open.ts'
import { createMigrationPool, toConnections, toPostgresKysely } from '../../src/db/postgres.ts'
import { openApp, startApp } from '../support/app.ts'
import { parentKey, startupErrorOf } from '../support/database.ts'
import {
  insertOldBudgets,
  listMigratedBudgets,
  migratedBudgets,
  oldMigrations,
} from '../support/old-budgets.ts'
import { createTestDatabase, query } from '../support/postgres.ts'
import { makeFolder } from '../support/process.ts'

vi.setConfig({ testTimeout: 60_000 })

const quiet = { warn() {} }

/** Opens the database and closes it when the test ends. */
async function opened(databaseUrl: string, dataDir = ':memory:') {
  const database = await openDatabase({ dataDir, databaseUrl, role: 'server', log: quiet })
  onTestFinished(() => database.close())
  return database
}

const refused = (databaseUrl: string, dataDir = ':memory:') =>
  startupErrorOf(openDatabase({ dataDir, databaseUrl, role: 'server' }))

/** Returns a copy of the URL with some parts replaced. */
function changed(
  databaseUrl: string,
  parts: Partial<Pick<URL, 'username' | 'password' | 'pathname' | 'port'>>,
) {
  return Object.assign(new URL(databaseUrl), parts).href
}

const migrations = { ...mainMigrations, ...conversationMigrations }

describe('a PostgreSQL connection', () => {
  test('uses timeouts, synchronous commits and the options from the URL', async () => {
    const { db } = await opened(`${await createTestDatabase()}?options=-c%20search_path%3Dpublic%2Cextra`)
    const names = [
      'statement_timeout',
      'lock_timeout',
      'idle_in_transaction_session_timeout',
      'synchronous_commit',
    ]
    const settings = await Promise.all(
      [...names, 'search_path', 'application_name'].map(async (name) => {
        const { rows } = await sql<{ value: string }>`select current_setting(${name}) as value`.execute(db)
        return rows[0]?.value
      }),
    )
    expect(settings).toEqual(['10s', '5s', '15s', 'on', 'public,extra', 'parley'])
  })

  test('returns counts, times and sums as numbers, and sorts text by byte value', async () => {
    const { db } = await opened(await createTestDatabase())
    for (const id of ['a', 'B', 'Z', 'ä']) {
      await db
        .insertInto('parent_keys')
        .values({ ...parentKey(id), created_at: 1_795_303_380_786_000 })
        .execute()
    }
    const sums = db
      .selectFrom('parent_keys')
      .select(({ fn }) => [fn.countAll().as('count'), fn.sum('created_at').as('sum')])
    expect(await sums.executeTakeFirst()).toEqual({ count: 4, sum: 7_181_213_523_144_000 })
    const rows = await db.selectFrom('parent_keys').select('id').orderBy('id').execute()
    expect(rows.map(({ id }) => id)).toEqual(['B', 'Z', 'a', 'ä'])
  })
})

describe('PostgreSQL migrations', () => {
  test('run only once when servers start concurrently', async () => {
    const url = await createTestDatabase('empty')
    const databases = await Promise.all([opened(url), opened(url), opened(url)])
    for (const { db } of databases) expect(await listPendingMigrations(db, migrations)).toEqual([])
    const names = (await query(url, 'select name from kysely_migration order by name')).map(
      ({ name }) => name,
    )
    expect(names).toEqual(Object.keys(migrations))
  })

  test('that are pending prevent commands from opening the database', async () => {
    const databaseUrl = await createTestDatabase('empty')
    expect(
      await startupErrorOf(openDatabase({ dataDir: ':memory:', databaseUrl, role: 'command' })),
    ).toContain('missing migrations: 0001_create_keys_and_agents')
    expect(await query(databaseUrl, `select tablename from pg_tables where schemaname = 'public'`)).toEqual(
      [],
    )
  })

  test('from a newer version prevent servers and commands from opening the database', async () => {
    const databaseUrl = await createTestDatabase()
    await query(databaseUrl, `insert into kysely_migration values ('9999_from_the_future', '')`)
    for (const role of ['server', 'command'] as const) {
      expect(await startupErrorOf(openDatabase({ dataDir: ':memory:', databaseUrl, role }))).toContain(
        'written by a different version of Parley (its migration 9999_from_the_future is unknown to this version)',
      )
    }
  })

  test('keep token budgets and the tokens used, and book the reservations of running calls', async () => {
    const url = await createTestDatabase('empty')
    const db = toPostgresKysely(toConnections(createMigrationPool(url, quiet)))
    onTestFinished(() => db.destroy())
    await applyPostgresMigrations(db, oldMigrations)
    await insertOldBudgets(db)
    await applyPostgresMigrations(db, mainMigrations)
    expect(await listMigratedBudgets(db)).toEqual(migratedBudgets)
  })

  test('are all rolled back when one of them fails', async () => {
    const url = await createTestDatabase('empty')
    const db = toPostgresKysely(toConnections(createMigrationPool(url, quiet)))
    onTestFinished(() => db.destroy())
    const steps: Record<string, Migration> = {
      '0001_create_a': { up: (on) => on.schema.createTable('a').addColumn('id', 'text').execute() },
      '0002_fail': { up: (on) => on.schema.createTable('a').addColumn('id', 'text').execute() },
    }
    expect(await startupErrorOf(applyPostgresMigrations(db, steps))).toContain('Migration 0002_fail failed')
    expect(await query(url, `select tablename from pg_tables where schemaname = 'public'`)).toEqual([])
  })
})

describe('a burst of statements', () => {
  test.each([
    ['for requests', 'db', 60],
    ['of one area', 'area', 28],
    ['in the background', 'background', 20],
  ])('%s waits for free connections while others finish', async (_what, kind, count) => {
    const { db, backgroundDb, dbFor = () => db } = await opened(await createTestDatabase())
    const used = kind === 'db' ? db : kind === 'area' ? dbFor('one') : backgroundDb
    const all = await Promise.all(
      Array.from({ length: count }, () => sql`select pg_sleep(0.8)`.execute(used)),
    )
    expect(all).toHaveLength(count)
  })
})

describe('a database', () => {
  test.each<[what: string, parts: Parameters<typeof changed>[1], words: string]>([
    ['that does not exist', { pathname: '/nowhere' }, 'has no database nowhere'],
    ['that the user cannot access', { username: 'stranger' }, 'denies stranger access to the database'],
    ['that is unreachable', { port: '1' }, '127.0.0.1:1 is unreachable (connect ECONNREFUSED'],
  ])('%s is rejected, and the error does not contain the password', async (_what, parts, words) => {
    const message = await refused(changed(await createTestDatabase(), { password: 'hidden', ...parts }))
    expect(message).toContain(words)
    expect(message).not.toContain('hidden')
  })

  test('whose certificate file cannot be read is rejected', async () => {
    expect(
      await refused(`${await createTestDatabase()}?sslmode=require&sslrootcert=/nowhere/ca.pem`),
    ).toMatch(/^DATABASE_URL is not usable \(ENOENT/)
  })

  test('without TLS is rejected if the URL requires TLS', async () => {
    expect(await refused(`${await createTestDatabase()}?sslmode=require`)).toContain('does not support SSL')
  })

  test('with an encoding other than UTF-8 is rejected', async () => {
    const url = await createTestDatabase('empty')
    const name = `${new URL(url).pathname.slice(1)}_ascii`
    await query(url, `create database ${name} template template0 encoding 'SQL_ASCII' locale 'C'`)
    onTestFinished(async () => void (await query(url, `drop database ${name}`)))
    expect(await refused(changed(url, { pathname: `/${name}` }))).toContain('uses the encoding SQL_ASCII')
  })
})

describe('a data directory used with a PostgreSQL database', () => {
  test('does not contain a database file or a lock file', async () => {
    const dataDir = join(await makeFolder(), 'data')
    const app = await openApp({ PARLEY_DATA_DIR: dataDir, DATABASE_URL: await createTestDatabase() })
    await app.createAgent()
    await app.close()
    const entries = await readdir(dataDir)
    expect(entries).toContain('secret')
    expect(entries.filter((entry) => /^(parley\.db|\.lock)/.test(entry))).toEqual([])
  })

  test('is rejected if it contains files and the database is new', async () => {
    const dataDir = join(await makeFolder(), 'data')
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'parley.db'), '')
    expect(await refused(await createTestDatabase('empty'), dataDir)).toContain(
      'contains files (such as parley.db) that belong to another database',
    )
  })
})

describe('the server secret', () => {
  const [SECRET, OTHER] = [
    'one secret that has at least 32 bytes',
    'another secret that has at least 32 bytes',
  ] as const

  test('must be the same on all servers that share a database', async () => {
    const env = { DATABASE_URL: await createTestDatabase(), PARLEY_SECRET: SECRET }
    const { key } = await startApp(env)
    await startApp({ ...env, PARLEY_PARENT_KEY: key })
    expect(await startupErrorOf(startApp({ ...env, PARLEY_SECRET: OTHER }))).toContain(
      'Set PARLEY_SECRET to the same value on all servers',
    )
  })

  test('can be replaced with PARLEY_SECRET_PREVIOUS, and the old secret is then rejected', async () => {
    const env = { DATABASE_URL: await createTestDatabase() }
    const { key } = await startApp({ ...env, PARLEY_SECRET: SECRET })
    const next = { ...env, PARLEY_SECRET: OTHER, PARLEY_SECRET_PREVIOUS: SECRET, PARLEY_PARENT_KEY: key }
    await startApp(next)
    expect(await startupErrorOf(startApp({ ...env, PARLEY_SECRET: SECRET }))).toContain(
      'have a different secret',
    )
  })
})

test('servers that start concurrently create only one first parent key', async () => {
  const { config } = await parseConfig({
    DATABASE_URL: await createTestDatabase(),
    PARLEY_DATA_DIR: ':memory:',
    PARLEY_SECRET: 'x'.repeat(32),
    PORT: '0',
    LOG_LEVEL: 'silent',
  })
  const { createService } = await import('../../src/server/service.ts')
  const services = await Promise.all(Array.from({ length: 4 }, () => createService({ config })))
  onTestFinished(async () => void (await Promise.all(services.map((service) => service.close()))))
  expect(services.filter(({ firstParentKey }) => firstParentKey !== undefined)).toHaveLength(1)
  expect(await query(config.databaseUrl as string, 'select name from parent_keys')).toEqual([
    { name: 'first' },
  ])
})
