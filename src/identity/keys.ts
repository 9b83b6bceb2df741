/** Creates, registers, lists, rotates and revokes parent keys. */
import type { Insertable } from 'kysely'
import type { Database } from '../db/database.ts'
import { mapConstraintError } from '../db/open.ts'
import type { CredentialTable, ParentKeyTable } from '../db/tables.ts'
import { digestOf, hintOf, type MintedKey, mintKey, parseKey, withoutKeys } from '../lib/api-key.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { type Page, toPage } from '../lib/page.ts'
import { type Actor, type AuditDeps, type AuditEvent, recordAudit, serviceActor } from './audit.ts'
import type { Dependencies } from './dependencies.ts'
import {
  type CredentialOwner,
  expireCredentials,
  findParentKey,
  type KeyListQuery,
  listCreatedKeys,
  listLiveKeysOf,
  lockParentKey,
  markRevoked,
  type ParentKeyRow,
  selectKeys,
  selectNewestFirst,
} from './key-store.ts'

export { type ParentKeyRow, stateOf, suspendAgentKeys } from './key-store.ts'

export type KeyDeps = AuditDeps & Pick<Dependencies, 'clock'> & { readonly keys: { invalidate(): void } }

/** A rotation's result. Times are Unix seconds. */
export interface Rotation {
  readonly key: MintedKey
  readonly rotatedAt: number
  readonly previousValidUntil: number
}

/** Creates a parent key, and with it a new tenant. */
export async function createParentKey(
  deps: KeyDeps,
  actor: Actor,
  name: string,
  userId: string | null = null,
): Promise<MintedKey> {
  const key = mintKey('parent', deps.random)
  await insertParentKeyAndCredential(deps, actor, { action: 'key.create', name, key, user_id: userId })
  return key
}

/** Creates a parent key in the caller's transaction; the caller must call `keys.invalidate()` afterwards. */
export async function insertFirstKey(
  deps: AuditDeps & Pick<Dependencies, 'clock'>,
  actor: Actor,
): Promise<MintedKey> {
  const key = mintKey('parent', deps.random)
  await insertKeyRows(deps, actor, { action: 'key.create', name: 'first', key })
  return key
}

/**
 * Registers the key from `PARLEY_PARENT_KEY`. Has no effect if the key was registered before, even if it has
 * since been rotated or revoked.
 */
export async function registerParentKey(deps: KeyDeps, text: string): Promise<void> {
  const parsed = parseKey(text)
  if (parsed?.kind !== 'parent')
    throw new ServiceError('invalid_value', 'PARLEY_PARENT_KEY: must be a parent key (svc_…)')
  if ((await findParentKey(deps.db, parsed.publicId)) !== undefined) return
  const key = { text, publicId: parsed.publicId, digest: digestOf(text), hint: hintOf(text) }
  try {
    const row = { action: 'key.register', name: 'environment', key } as const
    await insertParentKeyAndCredential(deps, serviceActor, row)
  } catch (error) {
    if (mapConstraintError(error) !== 'unique') throw error
  }
}

/** Creates a user's first key, whose text is never shown. Runs in the caller's transaction. */
export async function insertAutomaticKey(
  deps: AuditDeps & Pick<Dependencies, 'clock'>,
  actor: Actor,
  user: { readonly id: string; readonly email: string },
): Promise<string> {
  const key = mintKey('parent', deps.random)
  const row = { name: user.email, user_id: user.id, is_automatic: 1 }
  await insertKeyRows(deps, actor, { ...row, action: 'key.provision', key })
  return key.publicId
}

export function listKeysOfUser({ db }: Pick<Dependencies, 'db'>, userId: string): Promise<ParentKeyRow[]> {
  return listLiveKeysOf(db, [userId])
}

/** @throws ServiceError `not_found` */
export async function getParentKey(deps: Pick<Dependencies, 'db'>, id: string): Promise<ParentKeyRow> {
  const row = await findParentKey(deps.db, id)
  if (row === undefined) throw keyNotFound(id)
  return row
}

export function listParentKeys({ db }: Pick<Dependencies, 'db'>): Promise<ParentKeyRow[]> {
  return selectNewestFirst(db).execute()
}

/**
 * Revokes a parent key and its agents' keys; with `withCreated`, also the keys that it created, directly or
 * through other keys. Returns the ids of the revoked keys, starting with the key itself. @throws ServiceError
 * `not_found` if the key does not exist or is already revoked.
 */
export async function revokeParentKey(
  deps: KeyDeps,
  actor: Actor,
  id: string,
  { withCreated = false } = {},
): Promise<readonly string[]> {
  const revoked = await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    if (!(await revokeOne(within, actor, id))) throw keyNotFound(id)
    const ids = [id]
    // The loop also visits the ids that it adds. A revoked key cannot create further keys.
    for (const creator of withCreated ? ids : []) {
      for (const created of await listCreatedKeys(trx, creator)) {
        if (ids.includes(created)) continue
        await revokeOne(within, actor, created)
        ids.push(created)
      }
    }
    return ids
  })
  deps.keys.invalidate()
  return revoked
}

/** Returns false if the key does not exist or is already revoked. */
async function revokeOne(deps: KeyDeps, actor: Actor, id: string): Promise<boolean> {
  const isRevoked = await markRevoked(deps.db, id, unixSeconds(deps.clock))
  if (isRevoked) await recordAudit(deps, actor, { action: 'key.revoke', ...aboutKey(id) })
  return isRevoked
}

/**
 * Replaces a parent key's secret; the public id and the data do not change. @throws ServiceError `not_found`
 * if it does not exist or was revoked.
 */
export async function rotateParentKey(
  deps: KeyDeps,
  actor: Actor,
  tenantId: string,
  overlapSeconds: number,
): Promise<Rotation> {
  const rotation = await deps.db.transaction().execute(async (trx) => {
    // Without the lock, two concurrent rotations could create two secrets that never expire.
    const row = await lockParentKey(trx, tenantId)
    if (row === undefined || row.revoked_at !== null) throw keyNotFound(tenantId)
    const key = mintKey('parent', deps.random, tenantId)
    const within = { ...deps, db: trx }
    const rotated = await replaceSecret(within, { tenantId, agentId: null }, key, overlapSeconds)
    const changes = { hint: key.hint, rotated_at: rotated.rotatedAt }
    await trx.updateTable('parent_keys').set(changes).where('id', '=', tenantId).execute()
    const details = { key_hint: key.hint, overlap_seconds: overlapSeconds }
    await recordAudit(within, actor, { action: 'key.rotate', ...aboutKey(tenantId), details })
    return rotated
  })
  deps.keys.invalidate()
  return rotation
}

/** Locks the tenant, so that transactions that change it or its data run one at a time. */
export async function lockTenant({ db }: Pick<Dependencies, 'db'>, tenantId: string): Promise<void> {
  await lockParentKey(db, tenantId)
}

/**
 * Locks the tenant before a transaction adds data to it. @throws ServiceError `invalid_api_key` if the tenant
 * is revoked.
 */
export async function assertTenantLives({ db }: Pick<Dependencies, 'db'>, tenantId: string): Promise<void> {
  const row = await lockParentKey(db, tenantId)
  if (row === undefined || row.revoked_at !== null) {
    throw new ServiceError('invalid_api_key', 'The API key was revoked during the request.')
  }
}

/**
 * Makes `key` the owner's current secret, and lets earlier secrets expire after the overlap. Runs in the
 * caller's transaction.
 */
export async function replaceSecret(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  owner: CredentialOwner,
  key: MintedKey,
  overlapSeconds: number,
): Promise<Rotation> {
  const rotatedAt = unixSeconds(deps.clock)
  const previousValidUntil = rotatedAt + overlapSeconds
  await expireCredentials(deps.db, owner, previousValidUntil, rotatedAt)
  await insertSecret(deps.db, owner, key, rotatedAt)
  return { key, rotatedAt, previousValidUntil }
}

export async function insertSecret(
  db: Database,
  owner: CredentialOwner,
  key: MintedKey,
  createdAt: number,
): Promise<void> {
  const row: Insertable<CredentialTable> = {
    digest: key.digest,
    kind: owner.agentId === null ? 'parent' : 'agent',
    parent_key_id: owner.tenantId,
    agent_id: owner.agentId,
    valid_until: null,
    created_at: createdAt,
    suspended_at: null,
  }
  await db.insertInto('credentials').values(row).execute()
}

async function insertParentKeyAndCredential(deps: KeyDeps, actor: Actor, key: NewParentKey): Promise<void> {
  await deps.db.transaction().execute((trx) => insertKeyRows({ ...deps, db: trx }, actor, key))
  deps.keys.invalidate()
}

interface NewParentKey extends Omit<Insertable<ParentKeyTable>, 'id' | 'hint' | 'created_at'> {
  readonly action: 'key.create' | 'key.register' | 'key.provision'
  readonly key: MintedKey
}

/**
 * Inserts a parent key and its secret in the caller's transaction. The caller must call `keys.invalidate()`
 * afterwards.
 */
export async function insertKeyRows(
  deps: AuditDeps & Pick<Dependencies, 'clock'>,
  actor: Actor,
  { action, key, ...row }: NewParentKey,
): Promise<void> {
  const { publicId: id, hint } = key
  const createdAt = unixSeconds(deps.clock)
  const values = { ...row, id, hint, created_at: createdAt }
  await deps.db.insertInto('parent_keys').values(values).execute()
  await insertSecret(deps.db, { tenantId: id, agentId: null }, key, createdAt)
  await recordAudit(deps, actor, {
    action,
    ...aboutKey(id),
    details: { name: row.name, key_hint: hint, ...(row.can_manage_keys === 1 && { can_manage_keys: 1 }) },
  })
}

/** Builds the target of an audit event about a parent key, which is also its tenant. */
export function aboutKey(id: string): Pick<AuditEvent, 'target' | 'tenantId'> {
  return { target: { kind: 'key', id }, tenantId: id }
}

export function keyNotFound(id: string): ServiceError {
  return new ServiceError('not_found', `Parent key '${withoutKeys(id)}' does not exist or was revoked.`)
}

/** Returns true if there is a parent key that was not created automatically on a user's first visit. */
export async function hasParentKey(db: Database): Promise<boolean> {
  const query = db.selectFrom('parent_keys').select('id').where('is_automatic', '=', 0).limit(1)
  return (await query.executeTakeFirst()) !== undefined
}

/** Lists a page of keys. @throws ServiceError `invalid_value` if `after` is not a key's id. */
export async function listKeyPage(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  { limit, after, ...query }: KeyListQuery,
): Promise<Page<ParentKeyRow>> {
  const rows = await selectKeys(db, { ...query, after, limit: limit + 1 }, unixSeconds(clock))
  return toPage(rows, limit)
}

/** Lists each user's live keys, newest first; users without live keys have no entry. */
export async function listKeysOfUsers(
  { db }: Pick<Dependencies, 'db'>,
  userIds: readonly string[],
): Promise<Map<string | null, ParentKeyRow[]>> {
  if (userIds.length === 0) return new Map()
  return Map.groupBy(await listLiveKeysOf(db, userIds), (row) => row.user_id)
}

/** @throws ServiceError `not_found` if the key does not exist or was revoked. */
export async function getLiveKey({ db }: Pick<Dependencies, 'db'>, id: string): Promise<ParentKeyRow> {
  const row = await findParentKey(db, id)
  if (row === undefined || row.revoked_at !== null) throw keyNotFound(id)
  return row
}

export async function listRevokedKeys(db: Database, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('parent_keys')
    .select('id')
    .where('id', 'in', ids)
    .where('revoked_at', 'is not', null)
    .execute()
  return rows.map(({ id }) => id)
}
