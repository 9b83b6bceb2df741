/** Defines the agent pages' queries. */
import { type QueryClient, queryOptions, useSuspenseQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import type { AgentDetail } from '../api.ts'
import { api } from '../api.ts'
import type { AgentsSearch } from '../search.ts'
import { listAllVersions } from './lists.ts'

const PAGE_SIZE = 50

export const agentPageQuery = ({ q, sort, order, after }: AgentsSearch) =>
  queryOptions({
    queryKey: ['agents', 'list', { q, sort, order, after }],
    queryFn: () =>
      api.agents.list.query({ limit: PAGE_SIZE, q, sort, order, after, include: 'last_used_on' }),
  })

export const newestAgentsQuery = agentPageQuery({})

/** Reads one agent from the list, because list items contain the agent key. */
export const listedAgentQuery = (id: string) =>
  queryOptions({
    queryKey: ['agents', 'list', { id }],
    queryFn: async () => {
      const { data } = await api.agents.list.query({ limit: 1, q: id })
      return data.find((agent) => agent.id === id) ?? null
    },
  })

/** Agent names by id; omits deleted agents and agents of other keys. */
export const agentNamesQuery = (ids: readonly string[]) => {
  const wanted = [...new Set(ids)].toSorted().slice(0, MAX_IDS)
  return queryOptions({
    queryKey: ['agents', 'names', wanted],
    queryFn: async (): Promise<ReadonlyMap<string, string>> => {
      if (wanted.length === 0) return new Map()
      const found = await api.agents.names.query({ ids: wanted })
      return new Map(found.map(({ id, name }) => [id, name]))
    },
    staleTime: 60_000,
  })
}

const MAX_IDS = 100

export function refreshAgentLists(queries: QueryClient): Promise<void> {
  return queries.invalidateQueries({
    predicate: ({ queryKey: [first, second] }) =>
      first === 'agents' && (second === 'list' || second === 'names'),
  })
}

export const agentQuery = (id: string) =>
  queryOptions({ queryKey: ['agents', id], queryFn: () => api.agents.get.query({ agent_id: id }) })

export const versionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['agents', id, 'versions'],
    queryFn: () => listAllVersions(id),
  })

export const policyQuery = (id: string) =>
  queryOptions({
    queryKey: ['agents', id, 'policy'],
    queryFn: () => api.agents.modelPolicy.query({ agent_id: id }),
  })

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: () => api.models.choices.query(),
  staleTime: 60_000,
})

export const definitionSchemaQuery = queryOptions({
  queryKey: ['definition-schema'],
  queryFn: () => api.agents.definitionSchema.query(),
  staleTime: Number.POSITIVE_INFINITY,
})

/** Returns the current page's agent; works only below `AgentPage`, which loads it. */
export function useAgent(): AgentDetail {
  const { agentId } = useParams({ from: '/shell/agents/$agentId' })
  return useSuspenseQuery(agentQuery(agentId)).data
}
