/**
 * Defines where `agents apply` reads and writes agents, and implements it for this installation's database.
 */
import {
  createAgent,
  type DefinitionText,
  getAgent,
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
  create(text: DefinitionText): Promise<{ readonly id: string; readonly agentKey: string }>
  /** Rejects if the agent has changed since it was read. */
  replace(agent: StoredAgent, text: DefinitionText): Promise<void>
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
    async create(text) {
      const all = await loadOnce()
      const agent = await createAgent(all, commandActor(), tenantId, text)
      return { id: agent.row.id, agentKey: openAgentKey(all, agent) }
    },
    async replace({ id, version }, text) {
      await replaceAgent(await loadOnce(), commandActor(), tenantId, id, text, { ifMatch: `"${version}"` })
    },
  }
}
