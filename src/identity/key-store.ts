/** Reads and writes parent keys, and the credentials of parent and agent keys. */
import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { ParentKeyTable, Tables } from '../db/tables.ts'
import { contains, findListPlace, type Order, type PageQuery, pageOf } from '../lib/page.ts'
import type { Caller, OwnLimits } from '../operations/operation.ts'

export type ParentKeyRow = Selectable<ParentKeyTable>

export interface FoundCredential {
  readonly digest: string
  readonly caller: Caller
  /** The Unix second at which the secret or the parent key expires, whichever comes first. */
  readonly validUntil: number | null
}

/**
 * Finds a credential. Returns undefined if it is unknown, its parent key is revoked or disabled, or its agent
 * is in the bin.
 */
export async function findCredential(db: Database, digest: string): Promise<FoundCredential | undefined> {
  const row = await db
    .selectFrom('credentials')
    .innerJoin('parent_keys', 'parent_keys.id', 'credentials.parent_key_id')
    .where('credentials.digest', '=', digest)
    .where('parent_keys.revoked_at', 'is', null)
    .where('parent_keys.disabled_at', 'is', null)
    .where('credentials.suspended_at', 'is', null)
    .select(['credentials.digest', 'credentials.parent_key_id', 'agent_id', 'valid_until'])
    .select(['parent_keys.expires_at', 'requests_per_minute', 'max_streams'])
    .executeTakeFirst()
  if (row === undefined) return undefined
  const tenantId = row.parent_key_id
  const caller: Caller =
    row.agent_id === null
      ? { kind: 'parent', tenantId, ...ownLimitsOf(row) }
      : { kind: 'agent', tenantId, agentId: row.agent_id }
  return { digest: row.digest, caller, validUntil: earlierOf(row.valid_until, row.expires_at) }
}

export function ownLimitsOf({
  requests_per_minute: requestsPerMinute,
  max_streams: streams,
}: Pick<ParentKeyRow, 'requests_per_minute' | 'max_streams'>): { readonly ownLimits?: OwnLimits } {
  if (requestsPerMinute === null && streams === null) return {}
  return { ownLimits: { requestsPerMinute, streams } }
}

function earlierOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}

export type KeyState = 'active' | 'disabled' | 'expired' | 'revoked'

export function stateOf(
  { revoked_at, disabled_at, expires_at }: Pick<ParentKeyRow, 'revoked_at' | 'disabled_at' | 'expires_at'>,
  now: number,
): KeyState {
  if (revoked_at !== null) return 'revoked'
  if (disabled_at !== null) return 'disabled'
  return expires_at !== null && expires_at <= now ? 'expired' : 'active'
}

export async function findParentKey(db: Database, id: string): Promise<ParentKeyRow | undefined> {
  return db.selectFrom('parent_keys').selectAll().where('id', '=', id).executeTakeFirst()
}

/**
 * Locks the key until the transaction ends, and returns it. Every transaction that adds data to the key's
 * tenant acquires this lock.
 */
export async function lockParentKey(trx: Database, id: string): Promise<ParentKeyRow | undefined> {
  return trx
    .updateTable('parent_keys')
    .set((row) => ({ name: row.ref('name') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

export function selectNewestFirst(db: Database) {
  return db.selectFrom('parent_keys').selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc')
}

/** Sort expressions for lists of keys; the id breaks ties. */
export const keySorts = {
  created: sql.ref('created_at'),
  name: sql`lower(name)`,
  last_used: sql`coalesce(last_used_at, 0)`,
} as const

export interface KeyListQuery extends PageQuery {
  readonly sort: keyof typeof keySorts
  readonly order: Order
  /** Selects keys whose name or id contains this text. */
  readonly q?: string | undefined
  readonly user?: string | undefined
  readonly state?: KeyState | undefined
}

/** Lists parent keys. `now` is in Unix seconds. */
export async function selectKeys(
  db: Database,
  { sort, order, after, limit, q, user, state }: KeyListQuery,
  now: number,
): Promise<ParentKeyRow[]> {
  const keys = db.selectFrom('parent_keys').selectAll()
  const place = await findListPlace(keys, keySorts[sort], after)
  let found = keys
  if (q !== undefined) found = found.where(contains(['name', 'id'], q))
  if (user !== undefined) found = found.where('user_id', '=', user)
  if (state !== undefined) found = found.where(hasState(state, now))
  return pageOf(found, { by: keySorts[sort], order, after: place, limit }).execute()
}

function hasState(state: KeyState, now: number) {
  return (where: ExpressionBuilder<Tables, 'parent_keys'>) => {
    const isLive = where('revoked_at', 'is', null)
    const isEnabled = where.and([isLive, where('disabled_at', 'is', null)])
    switch (state) {
      case 'revoked':
        return where('revoked_at', 'is not', null)
      case 'disabled':
        return where.and([isLive, where('disabled_at', 'is not', null)])
      case 'expired':
        return where.and([isEnabled, where('expires_at', '<=', now)])
      case 'active':
        return where.and([
          isEnabled,
          where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]),
        ])
    }
  }
}

export async function findFirstUnowned(db: Database): Promise<string | undefined> {
  const row = await db
    .selectFrom('parent_keys')
    .select('id')
    .where('user_id', 'is', null)
    .where('managed_by', 'is', null)
    .where('revoked_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return row?.id
}

export async function listLiveKeysOf(db: Database, userIds: readonly string[]): Promise<ParentKeyRow[]> {
  return selectNewestFirst(db).where('user_id', 'in', userIds).where('revoked_at', 'is', null).execute()
}

/** Revokes a key; returns false if it does not exist or is already revoked. */
export async function markRevoked(db: Database, id: string, at: number): Promise<boolean> {
  const result = await db
    .updateTable('parent_keys')
    .set({ revoked_at: at })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Lists the ids of the keys that a key created, including revoked ones. */
export async function listCreatedKeys(db: Database, id: string): Promise<string[]> {
  const rows = await db.selectFrom('parent_keys').select('id').where('managed_by', '=', id).execute()
  return rows.map((row) => row.id)
}

export async function markUsed(db: Database, ids: readonly string[], at: number): Promise<void> {
  await db.updateTable('parent_keys').set({ last_used_at: at }).where('id', 'in', ids).execute()
}

export interface CredentialOwner {
  readonly tenantId: string
  /** Null for the tenant's parent key. */
  readonly agentId: string | null
}

/** Makes the owner's current secrets expire at `until`, and deletes secrets that have expired by `now`. */
export async function expireCredentials(
  db: Database,
  owner: CredentialOwner,
  until: number,
  now: number,
): Promise<void> {
  const agent = owner.agentId === null ? 'is' : '='
  await db
    .updateTable('credentials')
    .set({ valid_until: until })
    .where('parent_key_id', '=', owner.tenantId)
    .where('agent_id', agent, owner.agentId)
    .where((where) => where.or([where('valid_until', 'is', null), where('valid_until', '>', until)]))
    .execute()
  // Without an overlap, this deletes all secrets, so setting the clock back cannot make one valid again.
  await db
    .deleteFrom('credentials')
    .where('parent_key_id', '=', owner.tenantId)
    .where('agent_id', agent, owner.agentId)
    .where('valid_until', '<=', now)
    .execute()
}

/** Assigns an unowned live key to the user; returns false for any other key. */
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

/** Moves a tenant's agent keys, which stay valid, to another tenant. Runs in the caller's transaction. */
export async function moveAgentKeys(db: Database, fromTenantId: string, toTenantId: string): Promise<void> {
  await db
    .updateTable('credentials')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .where('agent_id', 'is not', null)
    .execute()
}

/**
 * Suspends an agent's keys, which are then rejected, or lifts the suspension if `at` is null. Runs in the
 * caller's transaction.
 */
export async function suspendAgentKeys(trx: Database, agentId: string, at: number | null): Promise<void> {
  await trx.updateTable('credentials').set({ suspended_at: at }).where('agent_id', '=', agentId).execute()
}
