/** Reads the names of parent keys, for administrators. */
import { queryOptions } from '@tanstack/react-query'
import { api } from '../api.ts'

const PAGE_SIZE = 100
const MOST_PAGES = 10

/** Maps the ids of the newest 1,000 parent keys to their names; the page shows the ids of older keys. */
export async function readKeyNames(): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  let after: string | undefined
  for (let page = 0; page < MOST_PAGES; page++) {
    const { data, has_more: hasMore } = await api.admin.keys.query({ limit: PAGE_SIZE, after })
    for (const { id, name } of data) names.set(id, name)
    after = data.at(-1)?.id
    if (!hasMore || after === undefined) break
  }
  return names
}

export const keyNamesQuery = queryOptions({
  queryKey: ['admin', 'keys', 'names'],
  queryFn: readKeyNames,
  staleTime: 60_000,
})
