/** Splits long lists into pages, and builds queries that search, sort and page a list. */
import { type Expression, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import { ServiceError } from './errors.ts'

export interface PageQuery {
  readonly limit: number
  readonly after?: string | undefined
}

export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly hasMore: boolean
}

interface Pageable<Row> {
  find(id: string): Promise<Row | undefined>
  list(limit: number, after: Row | undefined): Promise<Row[]>
}

export async function readPage<Row>({ limit, after }: PageQuery, source: Pageable<Row>): Promise<Page<Row>> {
  const last = after === undefined ? undefined : await source.find(after)
  if (after !== undefined && last === undefined)
    throw new ServiceError('invalid_value', 'after must be the id of an item in this list', {
      param: 'after',
    })
  return toPage(await source.list(limit + 1, last), limit)
}

/** `rows` must contain up to `limit + 1` items; the extra item indicates that there is another page. */
export function toPage<Row>(rows: readonly Row[], limit: number): Page<Row> {
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}

export type Order = 'asc' | 'desc'

/** The column or expression that a list is sorted by; an index should start with the same expression. */
export type SortKey = Expression<unknown>

/** A row's position in a sorted list. */
export interface ListPlace {
  readonly key: string | number
  readonly id: string
}

interface PageOf {
  readonly by: SortKey
  readonly order: Order
  readonly after: ListPlace | undefined
  readonly limit: number
}

/** Sorts by `by` and then by id, and starts after the given position. */
export function pageOf<DB, TB extends keyof DB, O>(
  query: SelectQueryBuilder<DB, TB, O>,
  { by, order, after, limit }: PageOf,
): SelectQueryBuilder<DB, TB, O> {
  const direction = order === 'asc' ? sql`asc` : sql`desc`
  const sorted = query.orderBy(sql`${by} ${direction}, id ${direction}`).limit(limit)
  if (after === undefined) return sorted
  const side = order === 'asc' ? sql`>` : sql`<`
  return sorted.where(sql<SqlBool>`(${by}, id) ${side} (${after.key}, ${after.id})`)
}

/**
 * Reads the position of the row that a page starts after. `rows` selects the rows that the caller may list.
 * @throws ServiceError `invalid_value` if none of them has this id.
 */
export async function findListPlace<DB, TB extends keyof DB, O>(
  rows: SelectQueryBuilder<DB, TB, O>,
  by: SortKey,
  id: string | undefined,
  param = 'after',
): Promise<ListPlace | undefined> {
  if (id === undefined) return undefined
  const row = await rows
    .clearSelect()
    .select(sql<string | number>`${by}`.as('key'))
    .where(sql<SqlBool>`id = ${id}`)
    .executeTakeFirst()
  if (row === undefined)
    throw new ServiceError('invalid_value', `${param}: must be the id of an item in this list`, { param })
  return { key: (row as { key: string | number }).key, id }
}

/** Matches rows where one of the columns contains the text; ignores the case of ASCII letters. */
export function contains(columns: readonly string[], text: string): Expression<SqlBool> {
  const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, String.raw`\$&`)}%`
  const matches = columns.map((column) => sql`lower(${sql.ref(column)}) like ${pattern} escape '\\'`)
  return sql<SqlBool>`(${sql.join(matches, sql` or `)})`
}
