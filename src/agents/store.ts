/** Reads and writes the `agents` and `agent_versions` tables. */
import { type Selectable, type SqlBool, sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { AgentTable, AgentVersionTable } from '../db/tables.ts'
import { contains, findListPlace, type ListPlace, type Order } from '../lib/page.ts'

export type AgentRow = Selectable<AgentTable>
export type AgentVersionRow = Selectable<AgentVersionTable>

/** Columns that can change without creating a new version. */
export const unversionedColumns = [
  'key_sealed',
  'key_hint',
  'parent_key_id',
  'model_policy',
  'model_policy_updated_at',
] as const

/** Sort expressions for lists of agents; the id breaks ties. */
export const agentSorts = {
  created: sql.ref('position'),
  name: sql`lower(name)`,
  updated: sql.ref('updated_at'),
} as const

export type AgentSort = keyof typeof agentSorts

/** Selects a range of agents; `above` and `below` are exclusive. */
export interface Page {
  readonly by: AgentSort
  readonly order: Order
  /** Selects agents with a greater sort key. */
  readonly above?: ListPlace | undefined
  /** Selects agents with a smaller sort key. */
  readonly below?: ListPlace | undefined
  /** Selects agents whose name or id contains this text. */
  readonly q?: string | undefined
  readonly limit?: number | undefined
}

export async function findAgent(db: Database, tenantId: string, id: string): Promise<AgentRow | undefined> {
  return ownAgents(db, tenantId).where('id', '=', id).executeTakeFirst()
}

/** Finds an agent by its key's public id in all tenants, because the id does not identify the tenant. */
export async function findAgentByKey(db: Database, keyId: string): Promise<AgentRow | undefined> {
  return db
    .selectFrom('agents')
    .selectAll()
    .where('key_id', '=', keyId)
    .where('binned_at', 'is', null)
    .executeTakeFirst()
}

export async function listAgentRows(
  db: Database,
  tenantId: string,
  { by, order, above, below, q, limit }: Page,
): Promise<AgentRow[]> {
  const key = agentSorts[by]
  const direction = order === 'asc' ? sql`asc` : sql`desc`
  let query = ownAgents(db, tenantId).orderBy(sql`${key} ${direction}, id ${direction}`)
  if (above !== undefined) query = query.where(sql<SqlBool>`(${key}, id) > (${above.key}, ${above.id})`)
  if (below !== undefined) query = query.where(sql<SqlBool>`(${key}, id) < (${below.key}, ${below.id})`)
  if (q !== undefined) query = query.where(contains(['name', 'id'], q))
  if (limit !== undefined) query = query.limit(limit)
  return query.execute()
}

/** @throws ServiceError `invalid_value` if the tenant has no agent with this id. */
export function findAgentPlace(
  db: Database,
  tenantId: string,
  by: AgentSort,
  id: string | undefined,
  param: 'after' | 'before',
): Promise<ListPlace | undefined> {
  return findListPlace(ownAgents(db, tenantId), agentSorts[by], id, param)
}

/** Returns the id and name of each of the tenant's agents in `ids`. */
export async function listNamesOf(
  db: Database,
  tenantId: string,
  ids: readonly string[],
): Promise<Pick<AgentRow, 'id' | 'name'>[]> {
  if (ids.length === 0) return []
  return ownAgents(db, tenantId).clearSelect().select(['id', 'name']).where('id', 'in', ids).execute()
}

export type AgentName = Pick<AgentRow, 'id' | 'created_at'>

/** Lists a tenant's agents, newest first. */
export async function listAgentNames(db: Database, tenantId: string): Promise<AgentName[]> {
  return db
    .selectFrom('agents')
    .select(['id', 'created_at'])
    .where('parent_key_id', '=', tenantId)
    .where('binned_at', 'is', null)
    .orderBy('position', 'desc')
    .execute()
}

/** Updates columns without creating a version. Returns false if the tenant has no such agent. */
export async function updateUnversioned(
  db: Database,
  tenantId: string,
  id: string,
  changes: Partial<Pick<AgentRow, (typeof unversionedColumns)[number]>>,
): Promise<boolean> {
  const result = await db
    .updateTable('agents')
    .set(changes)
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .where('binned_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Selects the tenant's agents that are not in the bin. */
function ownAgents(db: Database, tenantId: string) {
  return agentsOf(db, tenantId).where('binned_at', 'is', null)
}

export function binnedAgents(db: Database, tenantId: string) {
  return agentsOf(db, tenantId).where('binned_at', 'is not', null)
}

function agentsOf(db: Database, tenantId: string) {
  return db.selectFrom('agents').selectAll().where('parent_key_id', '=', tenantId)
}

/**
 * Moves an agent to the bin, or out of it if `at` is null. Returns undefined if the tenant has no such agent
 * to move.
 */
export function setBinned(
  db: Database,
  tenantId: string,
  id: string,
  at: number | null,
): Promise<AgentRow | undefined> {
  return db
    .updateTable('agents')
    .set({ binned_at: at })
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .where('binned_at', at === null ? 'is not' : 'is', null)
    .returningAll()
    .executeTakeFirst()
}

export function selectVersions(db: Database, tenantId: string, id: string) {
  return db
    .selectFrom('agent_versions')
    .selectAll()
    .where('agent_id', '=', id)
    .where('agent_id', 'in', (query) =>
      query
        .selectFrom('agents')
        .select('id')
        .where('parent_key_id', '=', tenantId)
        .where('binned_at', 'is', null),
    )
}
