/** What console users can do with their parent keys: list them, select the active one, claim one they know. */
import { moveAgents } from '../agents/agents.ts'
import { moveArtifacts } from '../artifacts/artifacts.ts'
import { moveFiles } from '../files/files.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { assertParentKey, claimParentKey, retireParentKey } from '../identity/key-claims.ts'
import { getParentKey, listKeysOfUser, lockTenant } from '../identity/keys.ts'
import { localAdministrator } from '../identity/sessions.ts'
import { findUserByEmail, lockUser, updateUser } from '../identity/users.ts'
import { ServiceError } from '../lib/errors.ts'
import type { ParentCaller } from '../operations/operation.ts'
import { moveUsage } from '../usage/usage.ts'
import type { Dependencies } from './dependencies.ts'
import { type Claim, type Me, type Moved, renderMe } from './schema.ts'

/** What the console shows of the caller: the user and all their keys, or the key that was presented. */
export async function readMe(
  deps: Pick<Dependencies, 'db' | 'agents'>,
  { tenantId, user }: ParentCaller,
): Promise<Me> {
  return renderMe({
    user: user === undefined ? undefined : await findUserByEmail(deps.db, user.email),
    isAdministrator: user?.isAdministrator ?? false,
    signedInBy: user === undefined ? 'key' : user.email === localAdministrator.email ? 'link' : 'proxy',
    keys: user === undefined ? [await getParentKey(deps, tenantId)] : await listKeysOfUser(deps, user.id),
    activeKeyId: tenantId,
    agentCount: (await deps.agents.list(tenantId)).length,
  })
}

export async function chooseKey(
  deps: Pick<Dependencies, 'db' | 'users'>,
  userId: string,
  parentKeyId: string,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, userId)
    await assertOwnKey({ db: trx }, userId, parentKeyId)
    await updateUser(trx, userId, { active_key_id: parentKeyId })
  })
  deps.users.forget()
}

type ClaimDeps = AuditDeps & Pick<Dependencies, 'clock' | 'usage'>

/**
 * Assigns a parent key to a user who knows its secret and makes it their active key. Moves everything that their automatic key owns to
 * it, and ends the automatic key. Changes nothing if the user already owns the key.
 * @throws ServiceError `invalid_value` (`invalid_parent_key`), `not_found` (`parent_key_not_found`), `conflict`
 * (`parent_key_already_claimed`).
 */
export async function claimKey(
  deps: ClaimDeps & Pick<Dependencies, 'keys' | 'agents'>,
  actor: Actor,
  userId: string,
  secret: string,
): Promise<Claim> {
  const text = await prepareClaim(deps, secret)
  const claim = await deps.db
    .transaction()
    .execute((trx) => claimWithin({ ...deps, db: trx }, actor, userId, text))
  deps.keys.forget()
  deps.agents.forget()
  deps.usage.forget()
  return claim
}

/** The result `claimKey` would have: runs the claim and rolls it back. @throws ServiceError as `claimKey` does. */
export async function previewClaim(
  deps: ClaimDeps,
  actor: Actor,
  userId: string,
  secret: string,
): Promise<Claim> {
  const text = await prepareClaim(deps, secret)
  const trx = await deps.db.startTransaction().execute()
  try {
    return await claimWithin({ ...deps, db: trx }, actor, userId, text)
  } finally {
    await trx.rollback().execute()
  }
}

async function prepareClaim({ usage }: ClaimDeps, secret: string): Promise<string> {
  const text = secret.trim()
  assertParentKey(text)
  await usage.flush()
  return text
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
  await recordAudit(deps, actor, { action: 'key.claim', target, tenantId: id, details: { retired, moved } })
  return { parentKeyId: id, moved }
}

export async function assertOwnKey(
  deps: Pick<Dependencies, 'db'>,
  userId: string,
  parentKeyId: string,
): Promise<void> {
  const keys = await listKeysOfUser(deps, userId)
  if (keys.some(({ id }) => id === parentKeyId)) return
  throw new ServiceError('not_found', 'None of your keys has this id.', { param: 'parent_key_id' })
}

const nothing: Moved = { agents: 0, files: 0, artifacts: 0, usage_days: 0, usage_calls: 0 }

/** A user has at most one automatic key. */
async function moveAutomatic(
  deps: Pick<Dependencies, 'db' | 'clock'>,
  userId: string,
  toTenantId: string,
): Promise<{ moved: Moved; retired: string | null }> {
  const keys = await listKeysOfUser(deps, userId)
  const automatic = keys.find((key) => key.is_automatic === 1)
  if (automatic === undefined) return { moved: nothing, retired: null }
  // Waits for concurrent inserts, so that those rows move too.
  await lockTenant(deps, automatic.id)
  const moved = await moveEverything(deps.db, automatic.id, toTenantId)
  await retireParentKey(deps, automatic.id)
  return { moved, retired: automatic.id }
}

async function moveEverything(trx: Dependencies['db'], from: string, to: string): Promise<Moved> {
  const agents = await moveAgents(trx, from, to)
  const files = await moveFiles(trx, from, to)
  const artifacts = await moveArtifacts(trx, from, to)
  const { days: usage_days, calls: usage_calls } = await moveUsage(trx, from, to)
  return { agents, files, artifacts, usage_days, usage_calls }
}
