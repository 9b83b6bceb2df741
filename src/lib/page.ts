/** Pages of long lists, newest first. */
import { ServiceError } from './errors.ts'

/** Which part of a list is wanted. */
export interface PageQuery {
  readonly limit: number
  /** The id of a row: only those behind it. */
  readonly after?: string | undefined
}

/** A part of a list; `hasMore` tells whether rows follow it. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly hasMore: boolean
}

/** Where a list comes from. */
export interface Pageable<Row> {
  find(id: string): Promise<Row | undefined>
  /** Those behind that row, in order; from the first one on without it. */
  list(limit: number, after: Row | undefined): Promise<Row[]>
}

/** Reads a page. @throws ServiceError `invalid_value` when `after` is the id of no row. */
export async function readPage<Row>({ limit, after }: PageQuery, source: Pageable<Row>): Promise<Page<Row>> {
  const last = after === undefined ? undefined : await source.find(after)
  if (after !== undefined && last === undefined)
    throw new ServiceError('invalid_value', 'after: names no entry of this list', { param: 'after' })
  return toPage(await source.list(limit + 1, last), limit)
}

/** Of rows that were asked for with one more than wanted, which tells whether there are more. */
export function toPage<Row>(rows: readonly Row[], limit: number): Page<Row> {
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}
