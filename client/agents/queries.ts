/** What the pages of agents ask the server for, under one key each. */
import { queryOptions, useSuspenseQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import type { AgentDetail } from '../api.ts'
import { api } from '../api.ts'

export const agentsQuery = queryOptions({
  queryKey: ['agents'],
  queryFn: async () => (await api.agents.list.query({})).data,
})

/** When each agent was called last, a day of UTC by its id. */
export const lastDaysQuery = queryOptions({
  queryKey: ['agents', 'last-days'],
  queryFn: async () => new Map((await api.usage.lastDays.query()).map(({ agent, day }) => [agent, day])),
})

export const agentQuery = (id: string) =>
  queryOptions({ queryKey: ['agents', id], queryFn: () => api.agents.get.query({ agent_id: id }) })

export const versionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['agents', id, 'versions'],
    queryFn: async () => (await api.agents.versions.query({ agent_id: id })).data,
  })

export const policyQuery = (id: string) =>
  queryOptions({
    queryKey: ['agents', id, 'policy'],
    queryFn: () => api.agents.modelPolicy.query({ agent_id: id }),
  })

/** Every model that chats, by its provider and by the id a caller names. */
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

/** Only below the agent's own page, which has loaded it. */
export function useAgent(): AgentDetail {
  const { agentId } = useParams({ from: '/shell/agents/$agentId' })
  return useSuspenseQuery(agentQuery(agentId)).data
}
