/** Defines the agent pages' queries. */
import { queryOptions, useSuspenseQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import type { AgentDetail } from '../api.ts'
import { api } from '../api.ts'
import { listAllAgents, listAllVersions } from './lists.ts'

export const agentsQuery = queryOptions({
  queryKey: ['agents'],
  queryFn: listAllAgents,
})

/** The day (UTC) of each agent's last call, by agent id. */
export const lastDaysQuery = queryOptions({
  queryKey: ['agents', 'last-days'],
  queryFn: async () => new Map((await api.usage.lastDays.query()).map(({ agent, day }) => [agent, day])),
})

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

/** Lists the chat models by provider and model id. */
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
