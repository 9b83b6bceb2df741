/** Runs in a worker thread: executes the statements that the main thread sends on one SQLite connection. */
import { parentPort, workerData } from 'node:worker_threads'
import type { Statement } from 'better-sqlite3'
import { openSqlite } from '../sqlite.ts'

/** One statement, or a request to close the connection. */
export type ThreadRequest = { readonly sql: string; readonly parameters: readonly unknown[] } | 'close'

export type ThreadAnswer =
  | {
      readonly rows: unknown[]
      readonly changes: number
      readonly lastInsertRowid: number | bigint | undefined
    }
  | { readonly error: { readonly message: string; readonly code: string | undefined } }

const connection = openSqlite(workerData.path)
connection.pragma('secure_delete = ON')
const statements = new Map<string, Statement<unknown[]>>()

function prepare(text: string): Statement<unknown[]> {
  // SQLite rolls back automatically after some errors; a second rollback would hide the cause.
  const isOver = text === 'rollback' && !connection.inTransaction
  const sql = isOver ? 'select null where false' : text === 'begin' ? 'begin immediate' : text
  // SQLite applies some pragmas when it prepares them, so a cached statement would have no effect.
  if (sql.startsWith('pragma')) return connection.prepare(sql)
  let statement = statements.get(sql)
  if (statement === undefined) {
    statement = connection.prepare(sql)
    if (statements.size > 500) statements.clear()
    statements.set(sql, statement)
  }
  return statement
}

function execute(sql: string, parameters: readonly unknown[]): ThreadAnswer {
  try {
    const statement = prepare(sql)
    if (statement.reader)
      return { rows: statement.all(...parameters), changes: 0, lastInsertRowid: undefined }
    const { changes, lastInsertRowid } = statement.run(...parameters)
    return { rows: [], changes, lastInsertRowid }
  } catch (error) {
    const { message, code } = error as { message: string; code?: string }
    return { error: { message, code } }
  }
}

parentPort?.on('message', (request: ThreadRequest) => {
  if (request === 'close') {
    connection.close()
    parentPort?.close()
  } else parentPort?.postMessage(execute(request.sql, request.parameters))
})
