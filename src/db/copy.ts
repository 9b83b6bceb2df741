/** Copies all rows from SQLite into an empty PostgreSQL database and verifies them, in one transaction. */
import { type Kysely, sql, type Transaction } from 'kysely'
import { StartupError } from '../lib/errors.ts'
import { hasCode } from '../lib/files.ts'
import type { ConversationDb } from './conversations/tables.ts'
import { fillPostgres } from './open-postgres.ts'
import type { Tables } from './tables.ts'

export type OnCopied = (step: 'copied' | 'compared', table: string, rows: number) => void

/**
 * Copies and verifies all tables, and returns the number of rows in each (ADR 0033). With SQLite, the stored
 * conversations are a second database, which may not exist.
 * @throws StartupError if PostgreSQL is not empty or a copied row would differ.
 */
export async function copyToPostgres(
  main: Kysely<Tables>,
  databaseUrl: string,
  onCopied: OnCopied = () => {},
  conversations?: ConversationDb,
): Promise<Record<string, number>> {
  return fillPostgres(databaseUrl, async (trx) => {
    const shapes = await listShapes(main, BATCH, trx)
    if (conversations !== undefined)
      shapes.push(...(await listShapes(conversations, CONVERSATION_BATCH, trx)))
    await lockTables(trx, shapes)
    await assertNoRows(trx, shapes)
    const endDeferral = await deferReferences(trx)
    const counts: Record<string, number> = {}
    for (const shape of shapes) counts[shape.name] = await copyTable(trx, shape, onCopied)
    await endDeferral()
    await advanceSequences(trx)
    await sql`analyze`.execute(trx)
    for (const shape of shapes) await compareTable(trx, shape, onCopied)
    return counts
  })
}

/** Prevents servers that already use the database from writing. */
async function lockTables(trx: Transaction<Tables>, shapes: readonly TableShape[]): Promise<void> {
  const tables = sql.join(shapes.map(({ name }) => sql.table(name)))
  await sql`lock table ${tables} in share row exclusive mode`.execute(trx)
}

async function assertNoRows(trx: Transaction<Tables>, shapes: readonly TableShape[]): Promise<void> {
  for (const { name } of shapes) {
    const { rows } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(trx)
    if (rows.length === 0) continue
    throw new StartupError(
      `The database in DATABASE_URL already contains rows (in ${name}). Nothing was copied; set DATABASE_URL to an empty database.`,
    )
  }
}

/**
 * Defers foreign key checks, because users and parent keys refer to each other, so no copying order works.
 * The returned function runs the checks and stops deferring them.
 */
async function deferReferences(trx: Transaction<Tables>): Promise<() => Promise<void>> {
  const { rows: references } = await sql<{ table: string; name: string }>`
    select conrelid::regclass::text as "table", conname as name from pg_constraint
    where contype = 'f' and connamespace = current_schema()::regnamespace and not condeferrable`.execute(trx)
  const alter = async (how: string) => {
    for (const { table, name } of references)
      await sql`alter table ${sql.raw(table)} alter constraint ${sql.ref(name)} ${sql.raw(how)}`.execute(trx)
  }
  await alter('deferrable initially deferred')
  return async () => {
    await sql`set constraints all immediate`.execute(trx)
    await alter('not deferrable')
  }
}

async function copyTable(trx: Transaction<Tables>, shape: TableShape, onCopied: OnCopied): Promise<number> {
  const { name } = shape
  const columns = sql.join(shape.columns.map((column) => sql.ref(column)))
  let count = 0
  for await (const rows of readInOrder(shape.source, shape)) {
    const json = JSON.stringify(rows.map(toJsonValues))
    const records = sql`json_populate_recordset(null::${sql.table(name)}, ${json}::json)`
    await sql`insert into ${sql.table(name)} (${columns}) select ${columns} from ${records}`
      .execute(trx)
      .catch((error: unknown) => {
        throw hasCode(error, UNTRANSLATABLE) ? notStorable(name) : error
      })
    count += rows.length
    onCopied('copied', name, count)
  }
  return count
}

/** Encodes bytes in the format that PostgreSQL expects in JSON. */
function toJsonValues(row: Row): Row {
  const values = Object.entries(row).map(([name, value]) =>
    value instanceof Uint8Array ? [name, `\\x${Buffer.from(value).toString('hex')}`] : [name, value],
  )
  return Object.fromEntries(values)
}

/** Makes PostgreSQL assign numbers above those of the copied rows. */
async function advanceSequences(trx: Transaction<Tables>): Promise<void> {
  const { rows } = await sql<{ table: string; column: string }>`
    select table_name as "table", column_name as "column" from information_schema.columns
    where table_schema = current_schema() and is_identity = 'YES'`.execute(trx)
  for (const { table, column } of rows) {
    const sequence = sql`pg_get_serial_sequence(quote_ident(${table}), ${column})`
    await sql`select setval(${sequence}, max(${sql.ref(column)})) from ${sql.table(table)}
      having max(${sql.ref(column)}) is not null`.execute(trx)
  }
}

/** PostgreSQL's error code for text that it cannot store, such as U+0000. */
const UNTRANSLATABLE = '22P05'

function notStorable(table: string): StartupError {
  return new StartupError(
    `A row of ${table} contains the character U+0000, which PostgreSQL cannot store. Change or delete the row and copy again.`,
  )
}

async function compareTable(trx: Transaction<Tables>, shape: TableShape, onCopied: OnCopied): Promise<void> {
  const copies = readInOrder(trx, shape)[Symbol.asyncIterator]()
  let count = 0
  for await (const rows of readInOrder(shape.source, shape)) {
    const { value: copied = [] } = await copies.next()
    for (const [at, row] of rows.entries()) {
      const copy = copied[at]
      const column = shape.columns.find((one) => !isSame(copy?.[one], row[one]))
      if (copy === undefined || column !== undefined) throw different(shape, row, column)
    }
    if (copied.length > rows.length) throw different(shape, copied[rows.length])
    count += rows.length
    onCopied('compared', shape.name, count)
  }
  const { value: more = [] } = await copies.next()
  if (more.length > 0) throw different(shape, more[0])
}

function isSame(copy: unknown, value: unknown): boolean {
  return value instanceof Uint8Array
    ? copy instanceof Uint8Array && Buffer.compare(copy, value) === 0
    : copy === value
}

function different({ name, key }: TableShape, row: Row = {}, column?: string): StartupError {
  const which = key.map((one) => `${one} ${JSON.stringify(row[one])}`).join(', ')
  const what =
    column === undefined ? 'exists in only one database' : `has a different ${column} in PostgreSQL`
  return new StartupError(
    `Table ${name}: the row with ${which} ${what}. Nothing was copied, and the PostgreSQL database is unchanged.`,
  )
}

/** Number of rows per batch. An `agents` row may contain 256 KiB. */
const BATCH = 500
/** Number of rows per batch in tables of conversations, whose rows may contain 2 MiB. */
const CONVERSATION_BATCH = 50

interface TableShape {
  readonly source: Source
  readonly batch: number
  readonly name: string
  readonly columns: readonly string[]
  readonly key: readonly string[]
}

type Source = Kysely<Tables> | ConversationDb

async function listShapes(source: Source, batch: number, postgres: Kysely<Tables>): Promise<TableShape[]> {
  // This function reads only names, so the table types do not matter.
  const sqlite = source as Kysely<Tables>

  const { rows: schemas } = await sql<{ name: string }>`select current_schema() as name`.execute(postgres)
  const there = (await postgres.introspection.getTables()).filter(({ schema }) => schema === schemas[0]?.name)
  const shapes: TableShape[] = []
  const derived = await listDerivedTables(sqlite)
  for (const { name, columns, isView } of await sqlite.introspection.getTables()) {
    if (isView || derived.has(name)) continue
    const names = columns.map((column) => column.name)
    const others = there.find((table) => table.name === name)?.columns.map((column) => column.name)
    if (names.toSorted().join() !== others?.toSorted().join())
      throw new StartupError(
        `The table ${name} has a different structure in PostgreSQL; copy into an empty database.`,
      )
    shapes.push({ source, batch, name, columns: names, key: await readKey(sqlite, name) })
  }
  return shapes
}

/** Lists the tables of the search index, which PostgreSQL builds automatically. */
async function listDerivedTables(sqlite: Kysely<Tables>): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`
    select name from pragma_table_list where type in ('virtual', 'shadow')`.execute(sqlite)
  return new Set(rows.map(({ name }) => name))
}

async function readKey(sqlite: Kysely<Tables>, table: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from pragma_table_info(${table}) where pk > 0 order by pk`.execute(sqlite)
  if (rows.length === 0) throw new Error(`the table ${table} has no primary key to compare its rows by`)
  return rows.map(({ name }) => name)
}

type Row = Readonly<Record<string, unknown>>

async function* readInOrder(db: Source, { name, columns, key, batch }: TableShape): AsyncGenerator<Row[]> {
  const [all, keys] = [columns, key].map((names) => sql.join(names.map((one) => sql.ref(one))))
  for (let last: Row | undefined; ; ) {
    const values = key.map((one) => last?.[one])
    const behind = last === undefined ? sql`` : sql`where (${keys}) > (${sql.join(values)})`
    const page = sql<Row>`select ${all} from ${sql.table(name)} ${behind} order by ${keys} limit ${sql.lit(batch)}`
    const { rows } = await page.execute(db)
    if (rows.length > 0) yield rows
    if (rows.length < batch) return
    last = rows.at(-1)
  }
}
