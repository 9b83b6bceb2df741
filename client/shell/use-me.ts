/** Reads the signed-in user and their keys. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'

export type Me = Outputs['manager']['me']

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () => api.manager.me.query(),
  staleTime: 60_000,
})

/** Returns the signed-in user; works only below `Shell`, which loads it. */
export function useMe(): Me {
  const { data } = useQuery(meQuery)
  if (data === undefined) throw new Error('useMe must be called below Shell')
  return data
}

/** Returns the id of the parent key whose data the console shows. */
export function useKeyId(): string {
  const { keys, parent_key: fallback } = useMe()
  return keys.find((key) => key.is_active)?.id ?? fallback
}
