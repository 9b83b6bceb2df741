/**
 * Creates, reads and changes parent keys on behalf of another key, a console user or a CLI command (ADR
 * 0046).
 */
import type { Insertable, Updateable } from 'kysely'
import type { ParentKeyTable } from '../db/tables.ts'
import { type MintedKey, mintKey } from '../lib/api-key.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { type Page, type PageQuery, readPage } from '../lib/page.ts'
import { lowerLimit } from '../operations/access.ts'
import type { ParentCaller } from '../operations/operation.ts'
import { type Actor, recordAudit } from './audit.ts'
import type { Dependencies } from './dependencies.ts'
import type { ParentKeyChanges, ParentKeyCreation } from './key-schema.ts'
import { findParentKey, lockParentKey, type ParentKeyRow, selectNewestFirst, stateOf } from './key-store.ts'
import {
  aboutKey,
  insertKeyRows,
  type KeyDeps,
  keyNotFound,
  type Rotation,
  revokeParentKey,
  rotateParentKey,
} from './keys.ts'

type Deps = KeyDeps & Pick<Dependencies, 'config'>

/** The key, user or command that manages keys. */
export type KeyManager = CallingManager | { readonly kind: 'command' }

interface CallingManager {
  readonly kind: 'key' | 'user'
  readonly id: string
}

export function managerOf({ tenantId, user }: ParentCaller): CallingManager {
  return user === undefined ? { kind: 'key', id: tenantId } : { kind: 'user', id: user.id }
}

/**
 * Lists the keys that the manager may read, newest first. @throws ServiceError `invalid_value` if `after` is
 * not one of them.
 */
export async function listManagedKeys(
  { db }: Pick<Deps, 'db'>,
  manager: CallingManager,
  query: PageQuery,
): Promise<Page<ParentKeyRow>> {
  const self = manager.kind === 'key' ? await findParentKey(db, manager.id) : undefined
  return readPage(query, {
    async find(id) {
      const row = await findParentKey(db, id)
      return row !== undefined && canRead(manager, self, row) ? row : undefined
    },
    list(limit, after) {
      const keys = selectNewestFirst(db)
        .limit(limit)
        .where((row) => {
          if (self === undefined) return row('user_id', '=', manager.id)
          const own = row('id', '=', self.id)
          return self.can_manage_keys === 1 ? row.or([own, row('managed_by', '=', self.id)]) : own
        })
      if (after === undefined) return keys.execute()
      return keys
        .where((row) => row(row.refTuple('created_at', 'id'), '<', row.tuple(after.created_at, after.id)))
        .execute()
    },
  })
}

/** @throws ServiceError `not_found`, including for a key that the manager may not read. */
export async function getManagedKey(
  { db }: Pick<Deps, 'db'>,
  manager: KeyManager,
  id: string,
): Promise<ParentKeyRow> {
  const self = manager.kind === 'key' ? await findParentKey(db, manager.id) : undefined
  const row = await findParentKey(db, id)
  if (row === undefined || !canRead(manager, self, row)) throw keyNotFound(id)
  return row
}

/**
 * Creates a key. A key that manages keys passes its own limits and its expiry on to the new key.
 * @throws ServiceError `insufficient_permissions`, `invalid_value`
 */
export async function createManagedKey(
  deps: Deps,
  actor: Actor,
  manager: KeyManager,
  { name, ...given }: ParentKeyCreation,
  more: Pick<Insertable<ParentKeyTable>, 'can_manage_keys'> = {},
): Promise<{ readonly key: MintedKey; readonly row: ParentKeyRow }> {
  const key = mintKey('parent', deps.random)
  const row = await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    const creator = manager.kind === 'key' ? await lockCreator(within, manager.id) : undefined
    const settings = resolveSettings(deps, creator, toAllSettings(given))
    const owner = manager.kind === 'user' ? { user_id: manager.id } : { managed_by: creator?.id ?? null }
    await insertKeyRows(within, actor, { action: 'key.create', name, key, ...owner, ...settings, ...more })
    return (await findParentKey(trx, key.publicId)) as ParentKeyRow
  })
  deps.keys.invalidate()
  return { key, row }
}

/**
 * @throws ServiceError `insufficient_permissions` unless the key may create keys; `invalid_api_key` if it
 *   was just disabled or revoked.
 */
async function lockCreator({ db, clock }: Pick<Deps, 'db' | 'clock'>, id: string): Promise<ParentKeyRow> {
  const row = await lockParentKey(db, id)
  if (row === undefined || stateOf(row, unixSeconds(clock)) !== 'active')
    throw new ServiceError('invalid_api_key', 'The API key was disabled or revoked during the request.')
  if (row.can_manage_keys === 1) return row
  throw new ServiceError(
    'insufficient_permissions',
    `This key may not create keys. The operator can allow it with \`parley keys update ${id} --manage-keys\`.`,
  )
}

/**
 * Changes the fields that are present. @throws ServiceError `not_found`, `insufficient_permissions`,
 * `invalid_value`
 */
export function updateManagedKey(
  deps: Deps,
  actor: Actor,
  manager: KeyManager,
  id: string,
  changes: ParentKeyChanges & { readonly can_manage_keys?: boolean | undefined },
): Promise<ParentKeyRow> {
  const { name, can_manage_keys: canManage, ...settings } = changes
  return changeKey(deps, actor, manager, id, 'key.update', (_row, self) => ({
    ...(name !== undefined && { name }),
    ...(canManage !== undefined && { can_manage_keys: canManage ? 1 : 0 }),
    ...resolveSettings(deps, self, settings),
  }))
}

/**
 * Disables a key. The key, its agent keys and its tokens are rejected until the key is enabled. @throws
 * ServiceError `not_found`, `insufficient_permissions`
 */
export function disableManagedKey(deps: Deps, actor: Actor, manager: KeyManager, id: string) {
  return changeKey(deps, actor, manager, id, 'key.disable', (row) =>
    row.disabled_at === null ? { disabled_at: unixSeconds(deps.clock) } : {},
  )
}

/** @throws ServiceError `not_found`, `insufficient_permissions` */
export function enableManagedKey(deps: Deps, actor: Actor, manager: KeyManager, id: string) {
  return changeKey(deps, actor, manager, id, 'key.enable', () => ({ disabled_at: null }))
}

/** @throws ServiceError `not_found`, `insufficient_permissions` */
export async function revokeManagedKey(deps: Deps, actor: Actor, manager: KeyManager, id: string) {
  const row = await getManagedKey(deps, manager, id)
  if (manager.kind !== 'user') assertCanChange(manager, row)
  await revokeParentKey(deps, actor, id)
}

/** Replaces the secret of a key that the manager may read. @throws ServiceError `not_found` */
export async function rotateManagedKey(
  deps: Deps,
  actor: Actor,
  manager: KeyManager,
  id: string,
  overlapSeconds: number,
): Promise<Rotation> {
  await getManagedKey(deps, manager, id)
  return rotateParentKey(deps, actor, id, overlapSeconds)
}

type KeySettings = Pick<ParentKeyRow, 'expires_at' | 'requests_per_minute' | 'max_streams'>
type Settings = Partial<Record<keyof KeySettings, number | null | undefined>>
type KeyUpdate = Updateable<ParentKeyTable>

/**
 * Changes a key, and records the values before and after the change. Does not record a change that has no
 * effect.
 */
async function changeKey(
  deps: Deps,
  actor: Actor,
  manager: KeyManager,
  id: string,
  action: 'key.update' | 'key.disable' | 'key.enable',
  toUpdate: (row: ParentKeyRow, self: ParentKeyRow | undefined) => KeyUpdate,
): Promise<ParentKeyRow> {
  const changed = await deps.db.transaction().execute(async (trx) => {
    const self = manager.kind === 'key' ? await findParentKey(trx, manager.id) : undefined
    const row = await lockParentKey(trx, id)
    if (row === undefined || row.revoked_at !== null || !canRead(manager, self, row)) throw keyNotFound(id)
    assertCanChange(manager, row)
    const update = withoutSame(row, toUpdate(row, self))
    const names = Object.keys(update) as (keyof KeyUpdate & keyof ParentKeyRow)[]
    if (names.length === 0) return row
    await trx.updateTable('parent_keys').set(update).where('id', '=', id).execute()
    const after: ParentKeyRow = { ...row, ...(update as Partial<ParentKeyRow>) }
    const pick = (from: ParentKeyRow) => Object.fromEntries(names.map((name) => [name, from[name]]))
    const details = action === 'key.update' ? { before: pick(row), after: pick(after) } : {}
    await recordAudit({ ...deps, db: trx }, actor, { action, ...aboutKey(id), details })
    return after
  })
  deps.keys.invalidate()
  return changed
}

function withoutSame(row: ParentKeyRow, update: KeyUpdate): KeyUpdate {
  const changes = Object.entries(update).filter(([name, value]) => row[name as keyof ParentKeyRow] !== value)
  return Object.fromEntries(changes)
}

/**
 * Returns whether the manager may read a key. A key may read itself and, if it manages keys, those that it
 * created; a user may read their own keys.
 */
function canRead(manager: KeyManager, self: ParentKeyRow | undefined, row: ParentKeyRow): boolean {
  if (manager.kind === 'command') return true
  if (manager.kind === 'user') return row.user_id === manager.id
  return row.id === manager.id || (self?.can_manage_keys === 1 && row.managed_by === manager.id)
}

/**
 * @throws ServiceError `insufficient_permissions` if a key tries to change itself, or if a user tries to
 *   change a key that another key manages. Otherwise the user could remove the limits that the managing key
 *   has set.
 */
function assertCanChange(manager: KeyManager, row: ParentKeyRow): void {
  if (manager.kind === 'key' && row.id === manager.id)
    throw new ServiceError(
      'insufficient_permissions',
      'key_id: a key cannot change, disable or revoke itself.',
    )
  if (manager.kind === 'user' && row.managed_by !== null)
    throw new ServiceError(
      'insufficient_permissions',
      'key_id: another key manages this key; only that key or the operator can change it.',
    )
}

/** Sets each absent setting of a new key to null. */
function toAllSettings({ expires_at = null, requests_per_minute = null, max_streams = null }: Settings) {
  return { expires_at, requests_per_minute, max_streams }
}

/**
 * Returns the settings with each null replaced by the manager's value. @throws ServiceError `invalid_value`
 * if a value exceeds the manager's.
 */
function resolveSettings(
  { config: { limits }, clock }: Pick<Deps, 'config' | 'clock'>,
  manager: ParentKeyRow | undefined,
  given: Settings,
): Partial<KeySettings> {
  const { requests_per_minute: requests, max_streams: streams, expires_at: expiresAt } = given
  assertAtMost('requests_per_minute', requests, lowerLimit(limits.parent, manager?.requests_per_minute))
  assertAtMost('max_streams', streams, lowerLimit(limits.streams.parent, manager?.max_streams))
  if (expiresAt != null && expiresAt <= unixSeconds(clock))
    throw invalid('expires_at', 'must be in the future')
  if (expiresAt != null && manager?.expires_at != null && expiresAt > manager.expires_at)
    throw invalid('expires_at', `must be at most ${manager.expires_at}, the expiry of the calling key`)
  return {
    ...(requests !== undefined && { requests_per_minute: requests ?? manager?.requests_per_minute ?? null }),
    ...(streams !== undefined && { max_streams: streams ?? manager?.max_streams ?? null }),
    ...(expiresAt !== undefined && { expires_at: expiresAt ?? manager?.expires_at ?? null }),
  }
}

function assertAtMost(param: string, value: number | null | undefined, limit: number): void {
  if (value != null && limit > 0 && value > limit)
    throw invalid(
      param,
      `must be at most ${limit}, the limit of the server or the calling key (got ${value})`,
    )
}

function invalid(param: string, problem: string): ServiceError {
  return new ServiceError('invalid_value', `${param}: ${problem}`, { param })
}
