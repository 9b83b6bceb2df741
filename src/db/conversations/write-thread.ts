/** Runs in a worker thread: executes the main thread's statements and procedures on one SQLite connection. */
import { parentPort, workerData } from 'node:worker_threads'
import type { Statement } from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { openSqlite } from '../sqlite.ts'
import type { ConversationTables, Procedure } from './tables.ts'

interface ProcedureCall {
  readonly file: string
  readonly name: string
  readonly input: unknown
}

/** One statement, procedures for one transaction, or a request to close the connection. */
export type ThreadRequest =
  | { readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly calls: readonly ProcedureCall[] }
  | 'close'

export interface StatementAnswer {
  readonly rows: unknown[]
  readonly changes: number
  readonly lastInsertRowid: number | bigint | undefined
}

export interface FailedAnswer {
  readonly error: { readonly message: string; readonly code: string | undefined }
}

export interface BatchAnswer {
  readonly results: readonly ({ readonly value: unknown } | FailedAnswer)[]
}

const connection = openSqlite(workerData.path)
connection.pragma('secure_delete = ON')
const statements = new Map<string, Statement<unknown[]>>()
const db = new Kysely<ConversationTables>({
  dialect: new SqliteDialect({ database: { prepare, close: () => connection.close() } }),
})

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

function execute(sql: string, parameters: readonly unknown[]): StatementAnswer | FailedAnswer {
  try {
    const statement = prepare(sql)
    if (statement.reader)
      return { rows: statement.all(...parameters), changes: 0, lastInsertRowid: undefined }
    const { changes, lastInsertRowid } = statement.run(...parameters)
    return { rows: [], changes, lastInsertRowid }
  } catch (error) {
    return toFailure(error)
  }
}

/** Runs the calls in one transaction. If one of them fails, each runs again in its own transaction. */
async function runCalls(calls: readonly ProcedureCall[]): Promise<BatchAnswer> {
  try {
    const values = await inTransaction(calls)
    return { results: values.map((value) => ({ value })) }
  } catch (error) {
    if (calls.length === 1) return { results: [toFailure(error)] }
    const results: BatchAnswer['results'][number][] = []
    for (const call of calls) results.push(...(await runCalls([call])).results)
    return { results }
  }
}

/** Uses no savepoints, because with them SQLite copies every page that it changes. */
async function inTransaction(calls: readonly ProcedureCall[]): Promise<unknown[]> {
  const found = await Promise.all(calls.map(findProcedure))
  return db.connection().execute(async (trx) => {
    const values: unknown[] = []
    prepare('begin').run()
    try {
      for (const [index, { input }] of calls.entries())
        values.push(await (found[index] as Procedure<unknown, unknown>).run(trx, input))
      prepare('commit').run()
      return values
    } catch (error) {
      if (connection.inTransaction) prepare('rollback').run()
      throw error
    }
  })
}

const procedures = new Map<string, Procedure<unknown, unknown>>()

async function findProcedure({ file, name }: ProcedureCall): Promise<Procedure<unknown, unknown>> {
  const key = `${file}#${name}`
  let procedure = procedures.get(key)
  if (procedure === undefined) {
    const module = await import(file)
    procedure = module[name] as Procedure<unknown, unknown>
    procedures.set(key, procedure)
  }
  return procedure
}

function toFailure(thrown: unknown): FailedAnswer {
  const { message, code } = thrown as { message: string; code?: string }
  return { error: { message, code } }
}

parentPort?.on('message', async (request: ThreadRequest) => {
  if (request === 'close') {
    connection.close()
    parentPort?.close()
    return
  }
  parentPort?.postMessage(
    'calls' in request ? await runCalls(request.calls) : execute(request.sql, request.parameters),
  )
})
