/** Rows of agents and of their earlier versions. A new column starts in a migration and in `db/tables.ts`. */
import type { ExpressionBuilder, Insertable, Selectable, Updateable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { AgentTable, AgentVersionTable, Tables } from '../db/tables.ts'

export type AgentRow = Selectable<AgentTable>
export type AgentVersionRow = Selectable<AgentVersionTable>

/** The columns that change without a new version. */
export const unversionedColumns = [
  'key_sealed',
  'key_hint',
  'parent_key_id',
  'model_policy',
  'model_policy_updated_at',
] as const

/** The position in the order of creation, with the id because two processes may create agents in the same microsecond. */
export type Place = Pick<AgentRow, 'position' | 'id'>

/** A part of the list; the agents at both places are excluded. */
export interface Page {
  readonly first: 'newest' | 'oldest'
  readonly newerThan?: Place | undefined
  readonly olderThan?: Place | undefined
  readonly limit?: number | undefined
}

export async function insertAgent(db: Database, row: Insertable<AgentTable>): Promise<void> {
  await db.insertInto('agents').values(row).execute()
}

export async function findAgent(db: Database, tenantId: string, id: string): Promise<AgentRow | undefined> {
  return ownAgents(db, tenantId).where('id', '=', id).executeTakeFirst()
}

/** Of any tenant, because the caller has only the agent's key. */
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

/** The number of agents by tenant; a tenant without agents is absent. */
export async function countAgentRows(
  db: Database,
  tenantIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('agents')
    .select(({ fn }) => ['parent_key_id', fn.countAll<number>().as('count')])
    .where('parent_key_id', 'in', tenantIds)
    .groupBy('parent_key_id')
    .execute()
  return new Map(rows.map(({ parent_key_id, count }) => [parent_key_id, Number(count)]))
}

export type SealedKey = Pick<AgentRow, 'id' | 'key_sealed'>

/** A sealed key that starts with none of the prefixes; undefined if there is none. */
export async function findSealedKey(
  db: Database,
  prefixes: readonly string[] = [],
): Promise<string | undefined> {
  return (await listSealedKeys(db, prefixes, { afterId: '', limit: 1 }))[0]?.key_sealed
}

/** Sealed keys of all tenants that start with none of the prefixes, by agent id, after `afterId`. */
export async function listSealedKeys(
  db: Database,
  prefixes: readonly string[],
  { afterId, limit }: { readonly afterId: string; readonly limit: number },
): Promise<SealedKey[]> {
  let query = db
    .selectFrom('agents')
    .select(['id', 'key_sealed'])
    .where('id', '>', afterId)
    .orderBy('id')
    .limit(limit)
  // `_` in a prefix matches any character, which does not matter for random names.
  for (const prefix of prefixes) query = query.where('key_sealed', 'not like', `${prefix}%`)
  return query.execute()
}

/** Replaces a sealed key, unless it has changed since it was read. */
export async function updateSealedKey(
  db: Database,
  { id, key_sealed: before }: SealedKey,
  sealed: string,
): Promise<void> {
  await db
    .updateTable('agents')
    .set({ key_sealed: sealed })
    .where('id', '=', id)
    .where('key_sealed', '=', before)
    .execute()
}

/** The columns for the list of models. */
export type AgentName = Pick<AgentRow, 'id' | 'created_at'>

/** Newest first. */
export async function listAgentNames(db: Database, tenantId: string): Promise<AgentName[]> {
  return db
    .selectFrom('agents')
    .select(['id', 'created_at'])
    .where('parent_key_id', '=', tenantId)
    .orderBy('position', 'desc')
    .execute()
}

/** Updates and returns the agent; undefined when its version is no longer that of `from`. */
export async function updateAgent(
  db: Database,
  from: AgentRow,
  changes: Updateable<AgentTable>,
): Promise<AgentRow | undefined> {
  return db
    .updateTable('agents')
    .set(changes)
    .where('id', '=', from.id)
    .where('parent_key_id', '=', from.parent_key_id)
    .where('version', '=', from.version)
    .returningAll()
    .executeTakeFirst()
}

/** Updates columns that need no new version; false when the tenant has no such agent. */
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

/** Moves all agents of a tenant to another with their versions; returns their number. */
export async function updateAgentOwners(
  db: Database,
  fromTenantId: string,
  toTenantId: string,
): Promise<number> {
  const result = await db
    .updateTable('agents')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** Deletes and returns the agent with its credentials and versions; undefined when the tenant has no such agent. */
export async function deleteAgentRow(
  db: Database,
  tenantId: string,
  id: string,
): Promise<AgentRow | undefined> {
  return db
    .deleteFrom('agents')
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .returningAll()
    .executeTakeFirst()
}

export async function insertVersion(db: Database, row: Insertable<AgentVersionTable>): Promise<void> {
  await db.insertInto('agent_versions').values(row).execute()
}

/** The versions before `version`, newest first. */
export async function listVersionRows(
  db: Database,
  tenantId: string,
  id: string,
  version: number,
): Promise<AgentVersionRow[]> {
  return ownVersions(db, tenantId, id).where('version', '<', version).orderBy('version', 'desc').execute()
}

export async function findVersion(
  db: Database,
  tenantId: string,
  id: string,
  version: number,
): Promise<AgentVersionRow | undefined> {
  return ownVersions(db, tenantId, id).where('version', '=', version).executeTakeFirst()
}

function isBeyond(side: '<' | '>', { position, id }: Place) {
  return (row: ExpressionBuilder<Tables, 'agents'>) =>
    row(row.refTuple('position', 'id'), side, row.tuple(position, id))
}

function ownAgents(db: Database, tenantId: string) {
  return db.selectFrom('agents').selectAll().where('parent_key_id', '=', tenantId)
}

function ownVersions(db: Database, tenantId: string, id: string) {
  return db
    .selectFrom('agent_versions')
    .selectAll()
    .where('agent_id', '=', id)
    .where('agent_id', 'in', (query) =>
      query.selectFrom('agents').select('id').where('parent_key_id', '=', tenantId),
    )
}
