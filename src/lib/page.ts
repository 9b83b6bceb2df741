/** Splits long lists into pages. */
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

/** `rows` must contain up to `limit + 1` items; the extra item shows that there is another page. */
export function toPage<Row>(rows: readonly Row[], limit: number): Page<Row> {
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}
