/** Who is signed in, and with which of their keys they work. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import type { Outputs } from '../api.ts'
import { api } from '../api.ts'

export type Me = Outputs['manager']['me']

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () => api.manager.me.query(),
  staleTime: 60_000,
})

/** Only below the shell, which waits for it. */
export function useMe(): Me {
  const { data } = useQuery(meQuery)
  if (data === undefined) throw new Error('nobody is known to be signed in yet')
  return data
}
