/** Rows of parent keys and of the credentials every key is found by. */
import type { Insertable, Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { CredentialTable, ParentKeyTable } from '../db/tables.ts'
import type { Caller } from '../operations/operation.ts'

export type ParentKeyRow = Selectable<ParentKeyTable>

/** A credential together with what decides whether it is still good. */
export interface FoundCredential {
  readonly digest: string
  readonly caller: Caller
  /** Unix seconds; null while it is the current secret. */
  readonly validUntil: number | null
}

export async function insertParentKey(db: Database, row: Insertable<ParentKeyTable>): Promise<void> {
  await db.insertInto('parent_keys').values(row).execute()
}

export async function insertCredential(db: Database, row: Insertable<CredentialTable>): Promise<void> {
  await db.insertInto('credentials').values(row).execute()
}

/** The credential with that digest, unless its parent key was revoked. */
export async function findCredential(db: Database, digest: string): Promise<FoundCredential | undefined> {
  const row = await db
    .selectFrom('credentials')
    .innerJoin('parent_keys', 'parent_keys.id', 'credentials.parent_key_id')
    .where('credentials.digest', '=', digest)
    .where('parent_keys.revoked_at', 'is', null)
    .select(['credentials.digest', 'credentials.parent_key_id', 'agent_id', 'valid_until'])
    .executeTakeFirst()
  if (row === undefined) return undefined
  const tenantId = row.parent_key_id
  const caller: Caller =
    row.agent_id === null ? { kind: 'parent', tenantId } : { kind: 'agent', tenantId, agentId: row.agent_id }
  return { digest: row.digest, caller, validUntil: row.valid_until }
}

export async function findParentKey(db: Database, id: string): Promise<ParentKeyRow | undefined> {
  return db.selectFrom('parent_keys').selectAll().where('id', '=', id).executeTakeFirst()
}

/** The key, which nobody else changes until the transaction is over, nor adds anything to its tenant that looks at it like this. */
export async function lockParentKey(trx: Database, id: string): Promise<ParentKeyRow | undefined> {
  return trx
    .updateTable('parent_keys')
    .set((row) => ({ name: row.ref('name') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

/** Newest first. */
export async function listParentKeyRows(db: Database): Promise<ParentKeyRow[]> {
  return db
    .selectFrom('parent_keys')
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
}

/** The oldest key that is nobody's and was not revoked. */
export async function findFirstUnowned(db: Database): Promise<string | undefined> {
  const row = await db
    .selectFrom('parent_keys')
    .select('id')
    .where('user_id', 'is', null)
    .where('revoked_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return row?.id
}

/** A part of all keys, newest first: those after that one. */
export async function listParentKeyPage(
  db: Database,
  limit: number,
  after: Pick<ParentKeyRow, 'id' | 'created_at'> | undefined,
): Promise<ParentKeyRow[]> {
  let query = db.selectFrom('parent_keys').selectAll().limit(limit)
  if (after !== undefined) {
    query = query.where((row) =>
      row(row.refTuple('created_at', 'id'), '<', row.tuple(after.created_at, after.id)),
    )
  }
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
}

/** The users' keys that were not revoked, newest first. */
export async function listLiveKeysOf(db: Database, userIds: readonly string[]): Promise<ParentKeyRow[]> {
  return db
    .selectFrom('parent_keys')
    .selectAll()
    .where('user_id', 'in', userIds)
    .where('revoked_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
}

/** Revokes for good; false when there is no such key or it was revoked before. */
export async function markRevoked(db: Database, id: string, at: number): Promise<boolean> {
  const result = await db
    .updateTable('parent_keys')
    .set({ revoked_at: at })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

export async function markRotated(db: Database, id: string, hint: string, at: number): Promise<void> {
  await db.updateTable('parent_keys').set({ hint, rotated_at: at }).where('id', '=', id).execute()
}

export async function markUsed(db: Database, ids: readonly string[], at: number): Promise<void> {
  await db.updateTable('parent_keys').set({ last_used_at: at }).where('id', 'in', ids).execute()
}

/** Whose secrets a rotation ends: the tenant's own key, or one of its agents'. */
export interface CredentialOwner {
  readonly tenantId: string
  readonly agentId: string | null
}

/** Lets the owner's present secrets work until `until` at the latest, and drops those already dead at `now`. */
export async function expireCredentials(
  db: Database,
  owner: CredentialOwner,
  until: number,
  now: number,
): Promise<void> {
  const agent = owner.agentId === null ? 'is' : '='
  await db
    .deleteFrom('credentials')
    .where('parent_key_id', '=', owner.tenantId)
    .where('agent_id', agent, owner.agentId)
    .where('valid_until', '<=', now)
    .execute()
  await db
    .updateTable('credentials')
    .set({ valid_until: until })
    .where('parent_key_id', '=', owner.tenantId)
    .where('agent_id', agent, owner.agentId)
    .where((where) => where.or([where('valid_until', 'is', null), where('valid_until', '>', until)]))
    .execute()
}

/** Makes a key that is nobody's yet, and was not revoked, that user's; false when it is not such a one. */
export async function setUser(db: Database, id: string, userId: string): Promise<boolean> {
  const result = await db
    .updateTable('parent_keys')
    .set({ user_id: userId })
    .where('id', '=', id)
    .where('user_id', 'is', null)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Hands the secrets of a tenant's agents to another tenant; its own stay. */
export async function updateAgentOwner(
  db: Database,
  fromTenantId: string,
  toTenantId: string,
): Promise<void> {
  await db
    .updateTable('credentials')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .where('agent_id', 'is not', null)
    .execute()
}
