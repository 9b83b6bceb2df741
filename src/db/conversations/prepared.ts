/** Compiles statements once, because building a statement with Kysely costs more than executing it. */
import type { Compilable, CompiledQuery, Insertable, QueryResult } from 'kysely'
import type { ConversationDb, ConversationTables } from './tables.ts'

class Placeholder {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** Creates a placeholder for a value that is known only when the statement is executed. */
export type Param<Values> = <Name extends keyof Values & string>(name: Name) => Values[Name]

export type Prepared<Values, Row> = (db: ConversationDb, values: Values) => Promise<QueryResult<Row>>

/** `build` may depend only on its placeholders, because the compiled statement is reused. */
export function prepare<Values extends object, Row = unknown>(
  build: (db: ConversationDb, param: Param<Values>) => Compilable<Row>,
): Prepared<Values, Row> {
  // Keeps one statement per adapter, because SQLite and PostgreSQL need different SQL.
  const compiled = new WeakMap<object, CompiledQuery<Row>>()
  const param: Param<Values> = (name) => new Placeholder(name) as never
  return (db, values) => {
    const { adapter } = db.getExecutor()
    let query = compiled.get(adapter)
    if (query === undefined) {
      query = build(db, param).compile()
      compiled.set(adapter, query)
    }
    const parameters = query.parameters.map((each) =>
      each instanceof Placeholder ? values[each.name as keyof Values] : each,
    )
    return db.executeQuery<Row>({ ...query, parameters })
  }
}

const inserts = new Map<string, Prepared<object, unknown>>()

/** Inserts a row. Rows of a table with the same columns share a statement. */
export async function insertRow<Table extends keyof ConversationTables>(
  db: ConversationDb,
  table: Table,
  row: Insertable<ConversationTables[Table]>,
): Promise<void> {
  const columns = Object.keys(row)
  const key = `${table}:${columns.join()}`
  let insert = inserts.get(key)
  if (insert === undefined) {
    insert = prepare<Record<string, unknown>>((builder, param) =>
      builder
        .insertInto(table)
        .values(Object.fromEntries(columns.map((name) => [name, param(name)])) as never),
    ) as Prepared<object, unknown>
    inserts.set(key, insert)
  }
  await insert(db, row)
}
