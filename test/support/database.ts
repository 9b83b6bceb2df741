/** What tests of the database share: opening it for one test, its rows, and the reason for a refused start. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { type OpenedDatabase, openDatabase } from '../../src/db/open.ts'
import { StartupError } from '../../src/startup-error.ts'

/** Opens a data directory, or `:memory:`, until the test ends. */
export async function opened(role: 'server' | 'command', dataDir: string): Promise<OpenedDatabase> {
  const database = await openDatabase({ dataDir, role })
  onTestFinished(() => database.close())
  return database
}

/** Opens the database file behind our code's back, until the test ends. */
export function raw(dataDir: string): Sqlite.Database {
  const connection = new Sqlite(join(dataDir, 'parley.db'))
  onTestFinished(() => void connection.close())
  return connection
}

/** The sentence an action is refused with; that it ends in anything else fails the test. */
export async function refusal(action: Promise<unknown>): Promise<string> {
  const error = await action.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(StartupError)
  return (error as StartupError).message
}

/** The row of a parent key. */
export const parentKey = (id: string) => ({ id, name: 'test', hint: 'svc_…0000', created_at: 1 })

/** The ids of all parent keys, in order. */
export async function listIds(database: OpenedDatabase): Promise<string[]> {
  const rows = await database.db.selectFrom('parent_keys').select('id').orderBy('id').execute()
  return rows.map((row) => row.id)
}
