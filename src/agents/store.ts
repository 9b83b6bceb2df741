/** Reads and writes the `agents` and `agent_versions` tables. */
import type { ExpressionBuilder, Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { AgentTable, AgentVersionTable, Tables } from '../db/tables.ts'

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

/**
 * An agent's position in creation order. The id breaks ties between agents created in the same microsecond.
 */
export type Place = Pick<AgentRow, 'position' | 'id'>

/** Selects a range of agents. `newerThan` and `olderThan` are exclusive. */
export interface Page {
  readonly first: 'newest' | 'oldest'
  readonly newerThan?: Place | undefined
  readonly olderThan?: Place | undefined
  readonly limit?: number | undefined
}

export async function findAgent(db: Database, tenantId: string, id: string): Promise<AgentRow | undefined> {
  return ownAgents(db, tenantId).where('id', '=', id).executeTakeFirst()
}

/** Finds an agent by its key's public id in all tenants, because the id does not identify the tenant. */
export async function findAgentByKey(db: Database, keyId: string): Promise<AgentRow | undefined> {
  return db.selectFrom('agents').selectAll().where('key_id', '=', keyId).executeTakeFirst()
}

export async function listAgentRows(db: Database, tenantId: string, page: Page): Promise<AgentRow[]> {
  const { first, newerThan, olderThan, limit } = page
  const order = first === 'newest' ? 'desc' : 'asc'
  let query = ownAgents(db, tenantId).orderBy('position', order).orderBy('id', order)
  if (newerThan !== undefined) query = query.where(isBeyond('>', newerThan))
  if (olderThan !== undefined) query = query.where(isBeyond('<', olderThan))
  if (limit !== undefined) query = query.limit(limit)
  return query.execute()
}

export type AgentName = Pick<AgentRow, 'id' | 'created_at'>

/** Lists a tenant's agents, newest first. */
export async function listAgentNames(db: Database, tenantId: string): Promise<AgentName[]> {
  return db
    .selectFrom('agents')
    .select(['id', 'created_at'])
    .where('parent_key_id', '=', tenantId)
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
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

function isBeyond(side: '<' | '>', { position, id }: Place) {
  return (row: ExpressionBuilder<Tables, 'agents'>) =>
    row(row.refTuple('position', 'id'), side, row.tuple(position, id))
}

function ownAgents(db: Database, tenantId: string) {
  return db.selectFrom('agents').selectAll().where('parent_key_id', '=', tenantId)
}

export function selectVersions(db: Database, tenantId: string, id: string) {
  return db
    .selectFrom('agent_versions')
    .selectAll()
    .where('agent_id', '=', id)
    .where('agent_id', 'in', (query) =>
      query.selectFrom('agents').select('id').where('parent_key_id', '=', tenantId),
    )
}
