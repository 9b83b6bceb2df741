/** Defines the queries of the Providers page, and reloads everything that depends on the providers. */
import { queryOptions, useQueryClient } from '@tanstack/react-query'
import { api, type Inputs, type Outputs } from '../api.ts'

export type Provider = Outputs['providers']['list']['data'][number]
export type ProviderTestResult = Outputs['providers']['test']
export type ProviderTestInput = Inputs['providers']['test']

const RELOAD_EVERY_MS = 15_000

export const providersQuery = queryOptions({
  queryKey: ['providers'],
  queryFn: () => api.providers.list.query({}),
  refetchInterval: RELOAD_EVERY_MS,
})

/** Refetches the providers and their models after a change. */
export function useRefreshProviders(): () => Promise<void> {
  const queries = useQueryClient()
  return async () => {
    await Promise.all([
      queries.invalidateQueries({ queryKey: providersQuery.queryKey }),
      queries.invalidateQueries({ queryKey: ['models'] }),
    ])
  }
}
