/** The agent that the address names. */
import { useSuspenseQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import type { AgentDetail } from '../../types.ts'
import { agentQuery } from '../queries.ts'

/** Only below the agent's own page, which has loaded it. */
export function useAgent(): AgentDetail {
  const { agentId } = useParams({ from: '/shell/agents/$agentId' })
  return useSuspenseQuery(agentQuery(agentId)).data
}
