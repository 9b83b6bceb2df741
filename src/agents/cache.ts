/** Caches agent rows for two seconds, and parsed definitions by version. */
import { LRUCache } from 'lru-cache'
import type { Database } from '../db/database.ts'
import type { Clock } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import { type ModelPolicy, openPolicy } from '../models/policy.ts'
import type { AgentCaller } from '../operations/operation.ts'
import { type AgentDefinition, parseDefinition, renderMarkdown } from './definition.ts'
import {
  type AgentName,
  type AgentRow,
  findAgent,
  findAgentByKey,
  listAgentNames,
  unversionedColumns,
} from './store.ts'

const memory = { max: 2_000, keepMs: () => 2_000 }
/** Limit on the total length of cached definitions and their Markdown, in UTF-16 code units. */
const MOST_PREPARED = 32 * 1024 * 1024

export interface Agent {
  readonly row: AgentRow
  readonly definition: AgentDefinition
  readonly markdown: string
  readonly policy: ModelPolicy
}

export interface AgentDirectory {
  find(tenantId: string, id: string): Agent | undefined | Promise<Agent | undefined>
  findByKey(keyId: string): Agent | undefined | Promise<Agent | undefined>
  /** Returns the tenant's agents, newest first. Returns the same array while it is cached. */
  list(tenantId: string): Promise<readonly AgentName[]>
  prepare(row: AgentRow): Agent
  /** Drops all cached rows. Call it after every change to agents. */
  invalidate(): void
}

export function createAgentDirectory(db: Database, clock: Pick<Clock, 'monotonic'>): AgentDirectory {
  const prepared = new LRUCache<string, Agent>({
    maxSize: MOST_PREPARED,
    sizeCalculation: ({ row, markdown }) => row.source.length + markdown.length,
  })
  const found = createTtlCache<Agent | undefined>(clock, memory)
  const foundByKey = createTtlCache<Agent | undefined>(clock, memory)
  const lists = createTtlCache<readonly AgentName[]>(clock, memory)

  function prepare(row: AgentRow): Agent {
    const key = `${row.id}@${row.version}`
    const known = prepared.get(key)
    if (known !== undefined && unversionedColumns.every((column) => known.row[column] === row[column]))
      return known
    const agent: Agent = {
      row,
      definition: known?.definition ?? parseDefinition(row.source, row.format),
      markdown: known?.markdown ?? renderMarkdown(row.source, row.format),
      policy: row.model_policy === null ? openPolicy : { ...openPolicy, ...JSON.parse(row.model_policy) },
    }
    prepared.set(key, agent)
    return agent
  }

  async function prepareFound(found: Promise<AgentRow | undefined>): Promise<Agent | undefined> {
    const row = await found
    return row === undefined ? undefined : prepare(row)
  }

  return {
    prepare,
    find: (tenantId, id) => found.get(`${tenantId}/${id}`, () => prepareFound(findAgent(db, tenantId, id))),
    findByKey: (keyId) => foundByKey.get(keyId, () => prepareFound(findAgentByKey(db, keyId))),
    list: async (tenantId) => lists.get(tenantId, () => listAgentNames(db, tenantId)),
    invalidate() {
      found.invalidate()
      foundByKey.invalidate()
      lists.invalidate()
    },
  }
}

/**
 * The error for missing agents and for other tenants' agents. Clients must not be able to distinguish them.
 */
export function agentNotFound(): ServiceError {
  return new ServiceError('not_found', 'Agent not found.')
}

/**
 * Returns the agent that the calling key belongs to.
 * @throws ServiceError `not_found` if it was just deleted.
 */
export function getOwnAgent(
  deps: { readonly agents: AgentDirectory },
  caller: AgentCaller,
): Agent | Promise<Agent> {
  const agent = deps.agents.find(caller.tenantId, caller.agentId)
  return agent instanceof Promise ? agent.then(assertFound) : assertFound(agent)
}

function assertFound(agent: Agent | undefined): Agent {
  if (agent === undefined) throw agentNotFound()
  return agent
}
