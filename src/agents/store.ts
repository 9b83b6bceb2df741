/** Rows of agents and of their earlier versions; every statement is scoped to the owner. */
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { AgentTable, AgentVersionTable } from '../db/tables.ts'
import type { Database } from '../deps.ts'

export type AgentRow = Selectable<AgentTable>
export type AgentVersionRow = Selectable<AgentVersionTable>

/** Which part of a list is wanted; without a limit all of it. Positions are exclusive. */
export interface Page {
  readonly limit: number | undefined
  readonly after: number | undefined
  readonly before: number | undefined
  readonly order: 'asc' | 'desc'
}

export async function insertAgent(db: Database, row: Insertable<AgentTable>): Promise<void> {
  await db.insertInto('agents').values(row).execute()
}

export async function findAgent(db: Database, tenantId: string, id: string): Promise<AgentRow | undefined> {
  return ownAgents(db, tenantId).where('id', '=', id).executeTakeFirst()
}

/** The page in its order; going backwards (`before` alone) it is the rows next to that one. */
export async function listAgentRows(db: Database, tenantId: string, page: Page): Promise<AgentRow[]> {
  const isBackwards = page.before !== undefined && page.after === undefined
  const isDescending = (page.order === 'desc') !== isBackwards
  let query = ownAgents(db, tenantId).orderBy('position', isDescending ? 'desc' : 'asc')
  if (page.after !== undefined) query = query.where('position', page.order === 'desc' ? '<' : '>', page.after)
  if (page.before !== undefined)
    query = query.where('position', page.order === 'desc' ? '>' : '<', page.before)
  if (page.limit !== undefined) query = query.limit(page.limit)
  const rows = await query.execute()
  return isBackwards ? rows.reverse() : rows
}

/** Writes a new definition over that version; false when another write came first. */
export async function updateAgent(
  db: Database,
  tenantId: string,
  id: string,
  fromVersion: number,
  changes: Updateable<AgentTable>,
): Promise<boolean> {
  const result = await db
    .updateTable('agents')
    .set(changes)
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .where('version', '=', fromVersion)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

export async function updateAgentKey(
  db: Database,
  tenantId: string,
  id: string,
  sealed: string,
  hint: string,
): Promise<void> {
  await db
    .updateTable('agents')
    .set({ key_sealed: sealed, key_hint: hint })
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .execute()
}

/** False when the tenant has no such agent. Its credentials and versions go with it. */
export async function deleteAgentRow(db: Database, tenantId: string, id: string): Promise<boolean> {
  const result = await db
    .deleteFrom('agents')
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

export async function insertVersion(db: Database, row: Insertable<AgentVersionTable>): Promise<void> {
  await db.insertInto('agent_versions').values(row).execute()
}

/** Newest first. */
export async function listVersionRows(
  db: Database,
  tenantId: string,
  id: string,
): Promise<AgentVersionRow[]> {
  return ownVersions(db, tenantId, id).orderBy('version', 'desc').execute()
}

export async function findVersion(
  db: Database,
  tenantId: string,
  id: string,
  version: number,
): Promise<AgentVersionRow | undefined> {
  return ownVersions(db, tenantId, id).where('version', '=', version).executeTakeFirst()
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
