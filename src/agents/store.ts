/** Rows of agents and of their earlier versions; every statement is scoped to the owner, or to one key. */
import type { ExpressionBuilder, Insertable, Selectable, Updateable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { AgentTable, AgentVersionTable, Tables } from '../db/tables.ts'

export type AgentRow = Selectable<AgentTable>
export type AgentVersionRow = Selectable<AgentVersionTable>

/** Where an agent stands in the order of creation; two processes may make one at the same microsecond. */
export type Place = Pick<AgentRow, 'position' | 'id'>

/** Which part of a list is wanted, and which end of it comes first. Places are exclusive. */
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

/** The agent whose key has that public id, whoever owns it: its key is all that anybody shows of it. */
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

/** How many agents each of these tenants has; one without any is absent. */
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

/** A key as it is sealed, and whose it is. */
export type SealedKey = Pick<AgentRow, 'id' | 'key_sealed'>

/** Any agent's key as it is sealed, unless it begins like one of these; undefined where there is none such. */
export async function findSealedKey(
  db: Database,
  prefixes: readonly string[] = [],
): Promise<string | undefined> {
  return (await listSealedKeys(db, prefixes, { afterId: '', limit: 1 }))[0]?.key_sealed
}

/** Keys of agents, of whatever tenant, that begin like none of these; in the order of their agents' ids, behind that one. */
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
  // A `_` in a prefix stands for any character: among random names that makes no difference.
  for (const prefix of prefixes) query = query.where('key_sealed', 'not like', `${prefix}%`)
  return query.execute()
}

/** Writes the same key, sealed otherwise, unless it is another by now. */
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

/** What the list of models shows of an agent. */
export type AgentName = Pick<AgentRow, 'id' | 'created_at'>

/** The tenant's agents, newest first. */
export async function listAgentNames(db: Database, tenantId: string): Promise<AgentName[]> {
  return db
    .selectFrom('agents')
    .select(['id', 'created_at'])
    .where('parent_key_id', '=', tenantId)
    .orderBy('position', 'desc')
    .execute()
}

/** Changes the agent and returns it as it is then; undefined when its version is no longer the one of `from`. */
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

/** False when the tenant has no such agent. */
export async function updateModelPolicy(
  db: Database,
  tenantId: string,
  id: string,
  policy: Pick<AgentRow, 'model_policy' | 'model_policy_updated_at'>,
): Promise<boolean> {
  const result = await db
    .updateTable('agents')
    .set(policy)
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Hands all agents of a tenant to another; answers how many they were. Their versions go along. */
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

/** False when the tenant has no such agent. */
export async function updateAgentKey(
  db: Database,
  tenantId: string,
  id: string,
  sealed: string,
  hint: string,
): Promise<boolean> {
  const result = await db
    .updateTable('agents')
    .set({ key_sealed: sealed, key_hint: hint })
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Deletes the agent and returns it as it was; undefined when the tenant has no such agent. Its credentials and versions go with it. */
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

/** Those before that version, newest first. */
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
