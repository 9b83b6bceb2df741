/** What a database says of its own tables, and how their rows are read in the order of their keys, on SQLite and PostgreSQL alike. */
import { type Kysely, sql } from 'kysely'
import { StartupError } from '../startup-error.ts'
import type { Tables } from './tables.ts'

/** Rows read and written at once; those of agents may have 256 KiB. */
const BATCH = 500

/** A table as both databases have it. */
export interface TableShape {
  readonly name: string
  readonly columns: readonly string[]
  /** The columns of its primary key, in order. */
  readonly key: readonly string[]
}

/** @throws StartupError when the second database lacks a table or a column, or has more of them in one. */
export async function listShapes(sqlite: Kysely<Tables>, postgres: Kysely<Tables>): Promise<TableShape[]> {
  const { rows: schemas } = await sql<{ name: string }>`select current_schema() as name`.execute(postgres)
  const there = (await postgres.introspection.getTables()).filter(({ schema }) => schema === schemas[0]?.name)
  const shapes: TableShape[] = []
  for (const { name, columns, isView } of await sqlite.introspection.getTables()) {
    if (isView) continue
    const names = columns.map((column) => column.name)
    const others = there.find((table) => table.name === name)?.columns.map((column) => column.name)
    if (names.toSorted().join() !== others?.toSorted().join())
      throw new StartupError(`The table ${name} is another one in PostgreSQL; copy into an empty database.`)
    shapes.push({ name, columns: names, key: await readKey(sqlite, name) })
  }
  return shapes
}

async function readKey(sqlite: Kysely<Tables>, table: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from pragma_table_info(${table}) where pk > 0 order by pk`.execute(sqlite)
  if (rows.length === 0) throw new Error(`the table ${table} has no primary key to compare its rows by`)
  return rows.map(({ name }) => name)
}

export type Row = Readonly<Record<string, unknown>>

/** All rows, a few at a time. */
export async function* readInOrder(
  db: Kysely<Tables>,
  { name, columns, key }: TableShape,
): AsyncGenerator<Row[]> {
  const [all, keys] = [columns, key].map((names) => sql.join(names.map((one) => sql.ref(one))))
  for (let last: Row | undefined; ; ) {
    const values = key.map((one) => last?.[one])
    const behind = last === undefined ? sql`` : sql`where (${keys}) > (${sql.join(values)})`
    const page = sql<Row>`select ${all} from ${sql.table(name)} ${behind} order by ${keys} limit ${sql.lit(BATCH)}`
    const { rows } = await page.execute(db)
    if (rows.length > 0) yield rows
    if (rows.length < BATCH) return
    last = rows.at(-1)
  }
}
