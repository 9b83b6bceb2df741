/** What users can do with parent keys: see theirs, choose the one they work with, claim one they know. */
import { moveAgents } from '../agents/agents.ts'
import { moveArtifacts } from '../artifacts/artifacts.ts'
import { moveFiles } from '../files/files.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { assertParentKey, claimParentKey, retireParentKey } from '../identity/key-claims.ts'
import { listKeysOfUser, lockTenant } from '../identity/keys.ts'
import type { UserDirectory } from '../identity/user-cache.ts'
import { lockUser, updateUser } from '../identity/users.ts'
import { ServiceError } from '../lib/errors.ts'
import { moveUsage } from '../usage/usage.ts'
import type { Dependencies } from './dependencies.ts'
import { type Claim, type MovedThings, renderMoved } from './schema.ts'

const nothing: MovedThings = { agents: 0, files: 0, artifacts: 0, usageDays: 0, usageCalls: 0 }

/**
 * Lets the user work with another of their keys.
 * @throws ServiceError `not_found` when it is none of theirs, or was revoked.
 */
export async function chooseKey(
  deps: Pick<Dependencies, 'db'> & { readonly users: UserDirectory },
  userId: string,
  parentKeyId: string,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, userId)
    await assertOwnKey({ db: trx }, userId, parentKeyId)
    await updateUser(trx, userId, { active_key_id: parentKeyId })
  })
  deps.users.invalidate()
}

/**
 * Makes a parent key whose secret the user knows theirs, and the one they work with. Everything their automatic key owns goes over to
 * it, and that one ends. A key that is theirs already changes nothing. Decision: 10.
 * @throws ServiceError `invalid_value` (`invalid_parent_key`), `not_found` (`parent_key_not_found`), `conflict`
 * (`parent_key_already_claimed`).
 */
export async function claimKey(
  deps: AuditDeps & Pick<Dependencies, 'clock' | 'keys' | 'agents' | 'usage'>,
  actor: Actor,
  userId: string,
  secret: string,
): Promise<Claim> {
  const text = secret.trim()
  assertParentKey(text)
  await deps.usage.flush()
  const claim = await deps.db
    .transaction()
    .execute((trx) => claimWithin({ ...deps, db: trx }, actor, userId, text))
  deps.keys.invalidate()
  deps.agents.invalidate()
  deps.usage.invalidate()
  return claim
}

/** What `claimKey` would answer, to whoever wants to know before; it is done, and undone. @throws ServiceError as `claimKey` does. */
export async function previewClaim(
  deps: AuditDeps & Pick<Dependencies, 'clock' | 'usage'>,
  actor: Actor,
  userId: string,
  secret: string,
): Promise<Claim> {
  const text = secret.trim()
  assertParentKey(text)
  await deps.usage.flush()
  const trx = await deps.db.startTransaction().execute()
  try {
    return await claimWithin({ ...deps, db: trx }, actor, userId, text)
  } finally {
    await trx.rollback().execute()
  }
}

async function claimWithin(
  deps: AuditDeps & Pick<Dependencies, 'clock'>,
  actor: Actor,
  userId: string,
  text: string,
): Promise<Claim> {
  await lockUser(deps.db, userId)
  const { id, wasOwn } = await claimParentKey(deps, text, userId)
  if (wasOwn) return { parentKeyId: id, moved: nothing }
  const { moved, retired } = await moveAutomatic(deps, userId, id)
  await updateUser(deps.db, userId, { active_key_id: id })
  const target = { kind: 'key', id } as const
  const details = { retired, moved: renderMoved(moved) }
  await recordAudit(deps, actor, { action: 'key.claim', target, tenantId: id, details })
  return { parentKeyId: id, moved }
}

/** @throws ServiceError `not_found` when the key is none of the user's, or was revoked. */
export async function assertOwnKey(
  deps: Pick<Dependencies, 'db'>,
  userId: string,
  parentKeyId: string,
): Promise<void> {
  const keys = await listKeysOfUser(deps, userId)
  if (keys.some(({ id }) => id === parentKeyId)) return
  throw new ServiceError('not_found', 'None of your keys has this id.', { param: 'parent_key_id' })
}

/** At most one of a user's keys was made for them. */
async function moveAutomatic(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  userId: string,
  toTenantId: string,
): Promise<{ moved: MovedThings; retired: string | null }> {
  const keys = await listKeysOfUser(deps, userId)
  const automatic = keys.find((key) => key.is_automatic === 1)
  if (automatic === undefined) return { moved: nothing, retired: null }
  // What is being added to it at the moment goes along.
  await lockTenant(deps, automatic.id)
  const moved = await moveEverything(deps.db, automatic.id, toTenantId)
  await retireParentKey(deps, automatic.id)
  return { moved, retired: automatic.id }
}

/** Every room hands over what it keeps of a tenant. */
async function moveEverything(trx: Dependencies['db'], from: string, to: string): Promise<MovedThings> {
  const agents = await moveAgents(trx, from, to)
  const files = await moveFiles(trx, from, to)
  const artifacts = await moveArtifacts(trx, from, to)
  const { days: usageDays, calls: usageCalls } = await moveUsage(trx, from, to)
  return { agents, files, artifacts, usageDays, usageCalls }
}
