/** Compiles the statements of a function, and reads their query plans. */
import {
  CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { inject } from 'vitest'

const isPostgres = inject('database') === 'postgres'

/** Returns the SQL statements that `run` would execute. */
export async function listStatements<T>(run: (db: Kysely<T>) => Promise<unknown>): Promise<CompiledQuery[]> {
  const statements: CompiledQuery[] = []
  const db = new Kysely<T>({
    dialect: {
      createAdapter: () => (isPostgres ? new PostgresAdapter() : new SqliteAdapter()),
      createDriver: () => new DummyDriver(),
      createIntrospector: (of) => (isPostgres ? new PostgresIntrospector(of) : new SqliteIntrospector(of)),
      createQueryCompiler: () => (isPostgres ? new PostgresQueryCompiler() : new SqliteQueryCompiler()),
    },
    log: ({ query }) => void statements.push(query),
  })
  await run(db)
  return statements
}

/** Returns the query plan, one line per step. */
export async function explain<T>(db: Kysely<T>, { sql: text, parameters }: CompiledQuery): Promise<string> {
  const word = isPostgres ? 'explain' : 'explain query plan'
  const { rows } = await db.executeQuery(CompiledQuery.raw(`${word} ${text}`, [...parameters]))
  return rows.map((row) => Object.values(row as object).join(' ')).join('\n')
}
