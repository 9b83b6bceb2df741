/** Parent keys as their users have them: one that somebody knows can be made theirs, and the one made for them goes. */

import { digestOf, parseKey } from '../lib/api-key.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { type Actor, type AuditDeps, recordAudit } from './audit.ts'
import type { Dependencies } from './dependencies.ts'
import {
  findCredential,
  findFirstUnowned,
  findParentKey,
  markRevoked,
  setUser,
  updateAgentOwner,
} from './key-store.ts'

/** How a claim went: the key is the user's now, or was before. */
export interface ClaimedKey {
  readonly id: string
  readonly wasOwn: boolean
}

/**
 * Makes the parent key with that secret the user's. Runs in the caller's transaction. Decision: 10.
 * @throws ServiceError `invalid_value` (`invalid_parent_key`), `not_found` (`parent_key_not_found`), `conflict`
 * (`parent_key_already_claimed`).
 */
export async function claimParentKey(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  text: string,
  userId: string,
): Promise<ClaimedKey> {
  const credential = await findCredential(db, digestOf(text))
  const isGood = credential?.validUntil == null || credential.validUntil > unixSeconds(clock)
  if (credential === undefined || !isGood) throw parentKeyNotFound()
  const id = credential.caller.tenantId
  if (await setUser(db, id, userId)) return { id, wasOwn: false }
  const row = await findParentKey(db, id)
  if (row === undefined || row.revoked_at !== null) throw parentKeyNotFound()
  if (row.user_id === userId) return { id, wasOwn: true }
  throw new ServiceError('conflict', 'This parent key belongs to another user.', {
    code: 'parent_key_already_claimed',
    param: 'parent_key',
  })
}

/**
 * Makes the oldest live key that is nobody's the user's, and answers its id; undefined when there is none. Runs in the caller's
 * transaction. Decision: 10 (the local administrator owns the first parent key).
 */
export async function takeFirstKey(
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

/** @throws ServiceError `invalid_value` (`invalid_parent_key`) for anything but a whole parent key. */
export function assertParentKey(text: string): void {
  if (parseKey(text)?.kind === 'parent') return
  throw new ServiceError('invalid_value', 'parent_key: is not a whole parent key (svc_…)', {
    code: 'invalid_parent_key',
    param: 'parent_key',
  })
}

/** Ends a key whose belongings have gone to another. Runs in the caller's transaction. */
export async function retireParentKey(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  id: string,
): Promise<void> {
  await markRevoked(db, id, unixSeconds(clock))
}

/** Hands the keys of a tenant's agents over: they go on working. Runs in the caller's transaction. */
export async function moveAgentKeys(
  trx: Dependencies['db'],
  fromTenantId: string,
  toTenantId: string,
): Promise<void> {
  await updateAgentOwner(trx, fromTenantId, toTenantId)
}

function parentKeyNotFound(): ServiceError {
  return new ServiceError('not_found', 'There is no such parent key, or it was revoked.', {
    code: 'parent_key_not_found',
    param: 'parent_key',
  })
}
