/**
 * Defines where `agents apply` reads and writes agents, and implements it for this installation's database.
 */
import {
  createAgent,
  type DefinitionText,
  getAgent,
  type NewVersion,
  openAgentKey,
  replaceAgent,
} from '../../agents/agents.ts'
import { listAllAgents } from '../../agents/list.ts'
import { commandActor } from '../installation.ts'
import { type AgentAccess, loadWriteDeps } from './agents.ts'

export interface AgentSummary {
  readonly id: string
  readonly name: string
}

export interface StoredAgent extends AgentSummary {
  readonly version: number
  readonly source: string
  readonly format: DefinitionText['format']
}

export interface AgentTarget {
  /** Lists the agents of the parent key, oldest first. */
  list(): Promise<readonly AgentSummary[]>
  read(id: string): Promise<StoredAgent>
  create(version: NewVersion): Promise<{ readonly id: string; readonly agentKey: string }>
  /** Rejects if the agent has changed since it was read. */
  replace(agent: StoredAgent, version: NewVersion): Promise<void>
}

export function createLocalTarget(access: AgentAccess): AgentTarget {
  const { deps, tenantId } = access
  let writeDeps: ReturnType<typeof loadWriteDeps> | undefined
  const loadOnce = () => {
    writeDeps ??= loadWriteDeps(access)
    return writeDeps
  }
  return {
    async list() {
      const agents = await listAllAgents(deps, tenantId, 'asc')
      return agents.map(({ row: { id, name } }) => ({ id, name }))
    },
    async read(id) {
      const { row } = await getAgent(deps, tenantId, id)
      return row
    },
    async create(given) {
      const all = await loadOnce()
      const agent = await createAgent(all, commandActor(), tenantId, given)
      return { id: agent.row.id, agentKey: openAgentKey(all, agent) }
    },
    async replace({ id, version }, given) {
      await replaceAgent(await loadOnce(), commandActor(), tenantId, id, given, { ifMatch: `"${version}"` })
    },
  }
}
