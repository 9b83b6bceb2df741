/** Remembers agents between calls: their definition is parsed once a version, and looked up at most every two seconds. */
import { LRUCache } from 'lru-cache'
import { createRemembered } from '../db/remembered.ts'
import type { Clock, Database } from '../deps.ts'
import { type AgentDefinition, parseDefinition, renderMarkdown } from './definition.ts'
import { type AgentRow, findAgent, listAgentRows } from './store.ts'

const REMEMBERED = 2_000
const memory = { max: REMEMBERED, keepMs: () => 2_000 }

/** An agent, ready to be used or rendered. */
export interface Agent {
  readonly row: AgentRow
  readonly definition: AgentDefinition
  readonly markdown: string
}

export interface AgentDirectory {
  /** The tenant's agent of that id, as it was at most two seconds ago. */
  find(tenantId: string, id: string): Promise<Agent | undefined>
  /** The tenant's agents, newest first, or just the one named; the same array as long as it is remembered. */
  list(tenantId: string, id?: string): Promise<readonly AgentRow[]>
  /** A row with its definition read. */
  prepare(row: AgentRow): Agent
  /** Forgets which agents there are: called after every change to them. */
  forget(): void
}

/** A directory over one database. */
export function createAgentDirectory(db: Database, clock: Pick<Clock, 'monotonic'>): AgentDirectory {
  const prepared = new LRUCache<string, Agent>({ max: REMEMBERED })
  const found = createRemembered<Agent | undefined>(clock, memory)
  const lists = createRemembered<readonly AgentRow[]>(clock, memory)

  function prepare(row: AgentRow): Agent {
    const key = `${row.id}@${row.version}`
    const known = prepared.get(key)
    // The same version can come with a rotated key.
    if (known !== undefined) return known.row.key_sealed === row.key_sealed ? known : { ...known, row }
    const definition = parseDefinition(row.source, row.format)
    const agent: Agent = { row, definition, markdown: renderMarkdown(row.source, row.format) }
    prepared.set(key, agent)
    return agent
  }

  async function lookUp(tenantId: string, id: string): Promise<Agent | undefined> {
    const row = await findAgent(db, tenantId, id)
    return row === undefined ? undefined : prepare(row)
  }

  async function lookUpList(tenantId: string, id: string | undefined): Promise<readonly AgentRow[]> {
    if (id !== undefined) return [await findAgent(db, tenantId, id)].filter((row) => row !== undefined)
    return listAgentRows(db, tenantId, {
      order: 'desc',
      limit: undefined,
      after: undefined,
      before: undefined,
    })
  }

  return {
    prepare,
    find: (tenantId, id) => found.get(`${tenantId}/${id}`, () => lookUp(tenantId, id)),
    list: (tenantId, id) => lists.get(`${tenantId}/${id ?? ''}`, () => lookUpList(tenantId, id)),
    forget() {
      found.forget()
      lists.forget()
    },
  }
}
