/** Opens databases, reads their rows and makes changes to them fail. */

import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { expect, inject, onTestFinished } from 'vitest'
import type { Database, OpenedDatabase } from '../../src/db/database.ts'
import { openDatabase } from '../../src/db/open.ts'
import type { Tables } from '../../src/db/tables.ts'
import { StartupError } from '../../src/lib/errors.ts'

/** Opens the database of a data directory and closes it when the test ends. */
export async function openTestDatabase(role: 'server' | 'command', dataDir: string): Promise<OpenedDatabase> {
  const database = await openDatabase({ dataDir, role })
  onTestFinished(() => database.close())
  return database
}

/** Opens the SQLite file directly and closes it when the test ends. */
export function openSqliteFile(
  dataDir: string,
  name: 'parley.db' | 'conversations.db' = 'parley.db',
): Sqlite.Database {
  const connection = new Sqlite(join(dataDir, name))
  onTestFinished(() => void connection.close())
  return connection
}

/** Returns the message of the StartupError that the action must throw. */
export async function startupErrorOf(action: Promise<unknown>): Promise<string> {
  const error = await action.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(StartupError)
  return (error as StartupError).message
}

/** Returns a row for the table `parent_keys`. */
export const parentKey = (id: string) => ({ id, name: 'test', hint: 'svc_…0000', created_at: 1 })

/** Lists the ids of all parent keys. */
export async function listIds(database: OpenedDatabase): Promise<string[]> {
  const rows = await database.db.selectFrom('parent_keys').select('id').orderBy('id').execute()
  return rows.map((row) => row.id)
}

/**
 * Adds a trigger that rejects every change of this kind with the message; returns a function that removes it.
 */
export async function failOnChange(
  db: Database,
  change: 'insert on audit_events' | 'insert on credentials' | 'update of outcome on artifacts',
  message: string,
): Promise<() => Promise<void>> {
  const [begin, end] =
    inject('database') === 'sqlite' ? toSqliteTrigger(change, message) : toPostgresTrigger(change, message)
  for (const statement of begin) await sql.raw(statement).execute(db)
  return async () => {
    for (const statement of end) await sql.raw(statement).execute(db)
  }
}

function toSqliteTrigger(change: string, message: string): [begin: string[], end: string[]] {
  const body = `begin select raise(abort, '${message}'); end`
  return [[`create trigger fail_at before ${change} ${body}`], ['drop trigger fail_at']]
}

function toPostgresTrigger(change: string, message: string): [begin: string[], end: string[]] {
  const body = `begin raise exception '${message}'; end`
  return [
    [
      `create function fail_at() returns trigger language plpgsql as $$ ${body} $$`,
      `create trigger fail_at before ${change} for each row execute function fail_at()`,
    ],
    ['drop function fail_at() cascade'],
  ]
}

/** Returns, for each table, all its rows as JSON texts in sorted order. */
export async function readTables(db: Database, tables: readonly (keyof Tables)[]): Promise<unknown[]> {
  const found: unknown[] = []
  for (const table of tables) {
    const rows = await db.selectFrom(table).selectAll().execute()
    found.push(rows.map((row) => JSON.stringify(row)).sort())
  }
  return found
}
