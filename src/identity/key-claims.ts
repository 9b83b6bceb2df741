/** Assigns parent keys to users, either by a key's secret or as the installation's first key. */

import { digestOf, parseKey } from '../lib/api-key.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { type Actor, type AuditDeps, recordAudit } from './audit.ts'
import type { Dependencies } from './dependencies.ts'
import { findCredential, findFirstUnowned, findParentKey, markRevoked, setUser } from './key-store.ts'

export { moveAgentKeys } from './key-store.ts'

/**
 * Assigns the parent key `text` to the user, in the caller's transaction. Check the text with
 * `assertParentKey` first. `wasOwn` is true if the user already owned the key.
 * @throws ServiceError `not_found` (`parent_key_not_found`), `conflict` (`parent_key_already_claimed`).
 */
export async function claimParentKey(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  text: string,
  userId: string,
): Promise<{ readonly id: string; readonly wasOwn: boolean }> {
  const credential = await findCredential(db, digestOf(text))
  const isGood = credential?.validUntil == null || credential.validUntil > unixSeconds(clock)
  if (credential === undefined || !isGood) throw parentKeyNotFound()
  const id = credential.caller.tenantId
  if (await setUser(db, id, userId)) return { id, wasOwn: false }
  const row = await findParentKey(db, id)
  if (row === undefined || row.revoked_at !== null) throw parentKeyNotFound()
  if (row.user_id === userId) return { id, wasOwn: true }
  throw new ServiceError('conflict', 'parent_key belongs to another user', {
    code: 'parent_key_already_claimed',
    param: 'parent_key',
  })
}

/**
 * Assigns to the user the oldest live key that has neither an owner nor a managing key. Runs in the caller's
 * transaction. Returns the key's id, or undefined if there is no such key.
 */
export async function claimFirstKey(
  deps: AuditDeps,
  actor: Actor,
  userId: string,
): Promise<string | undefined> {
  const id = await findFirstUnowned(deps.db)
  if (id === undefined || !(await setUser(deps.db, id, userId))) return undefined
  const target = { kind: 'key', id } as const
  await recordAudit(deps, actor, { action: 'key.claim', target, tenantId: id })
  return id
}

/** @throws ServiceError `invalid_value` (`invalid_parent_key`) unless the text is a complete parent key. */
export function assertParentKey(text: string): void {
  if (parseKey(text)?.kind === 'parent') return
  throw new ServiceError('invalid_value', 'parent_key: must be a complete parent key (svc_…)', {
    code: 'invalid_parent_key',
    param: 'parent_key',
  })
}

/** Revokes a key after its data was moved to another key. Runs in the caller's transaction. */
export async function retireParentKey(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  id: string,
): Promise<void> {
  await markRevoked(db, id, unixSeconds(clock))
}

function parentKeyNotFound(): ServiceError {
  return new ServiceError('not_found', 'The parent key does not exist or was revoked.', {
    code: 'parent_key_not_found',
    param: 'parent_key',
  })
}
