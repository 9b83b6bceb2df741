/** What an agent key may know of the agent it belongs to. */

import type { AgentCaller } from '../keys/schema.ts'
import { agentNotFound } from './agents.ts'
import type { Agent, AgentDirectory } from './directory.ts'

/** The agent behind an agent key. @throws ServiceError `not_found` when it was deleted a moment ago. */
export async function getOwnAgent(
  deps: { readonly agents: AgentDirectory },
  caller: AgentCaller,
): Promise<Agent> {
  const agent = await deps.agents.find(caller.tenantId, caller.agentId)
  if (agent === undefined) throw agentNotFound()
  return agent
}
