/** Defines the console's API operations for the user, the session and the user's parent keys. */

import { z } from 'zod'
import { moveAgents } from '../agents/agents.ts'
import { renderParentKey } from '../agents/schema.ts'
import { moveArtifacts } from '../artifacts/artifacts.ts'
import { addDefaultBudgets } from '../budgets/default-budget.ts'
import { moveFiles } from '../files/files.ts'
import { type Actor, actorOf, recordAudit } from '../identity/audit.ts'
import { assertParentKey, claimParentKey, retireParentKey } from '../identity/key-claims.ts'
import { ParentKeyRotated, renderRotation } from '../identity/key-schema.ts'
import {
  createParentKey,
  getParentKey,
  listKeysOfUser,
  lockTenant,
  revokeParentKey,
  rotateParentKey,
} from '../identity/keys.ts'
import { localAdministrator, signIn, signOut } from '../identity/sessions.ts'
import { findUserByEmail, lockUser, updateUser } from '../identity/users.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import { limitAuthFailures } from '../operations/access.ts'
import { type ConsoleUser, operationsOf, type ParentCaller } from '../operations/operation.ts'
import { sumSpent } from '../usage/spent-before.ts'
import { moveUsage } from '../usage/usage.ts'
import { moveWebhooks } from '../webhooks/webhooks.ts'
import type { Dependencies } from './dependencies.ts'
import { checkPageFraming } from './page-check.ts'
import {
  CheckedPage,
  type Claim,
  ClaimPreview,
  KeyChoice,
  KeyClaim,
  KeyClaimed,
  KeyCreated,
  KeyCreation,
  Me,
  type Moved,
  OwnKeyRevoked,
  OwnKeyRotation,
  PageToCheck,
  renderKey,
  renderUser,
  SignedIn,
  SignedOut,
  SignIn,
} from './schema.ts'

async function readMe(deps: Dependencies, { tenantId, user }: ParentCaller): Promise<Me> {
  const { isAllowed, maxDays } = deps.config.conversations
  const row = user === undefined ? undefined : await findUserByEmail(deps.db, user.email)
  const keys = user === undefined ? [await getParentKey(deps, tenantId)] : await listKeysOfUser(deps, user.id)
  return {
    user: row === undefined ? null : renderUser(row),
    is_administrator: user?.isAdministrator ?? false,
    signed_in_by: user === undefined ? 'key' : user.email === localAdministrator.email ? 'link' : 'proxy',
    keys: keys.map((key) => renderKey(key, tenantId)),
    parent_key: renderParentKey(tenantId),
    agents: (await deps.agents.list(tenantId)).length,
    conversations: { is_allowed: isAllowed, max_days: maxDays },
    webhooks: { is_allowed: deps.config.webhooks.isAllowed },
  }
}

async function chooseKey(deps: Dependencies, userId: string, parentKeyId: string): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, userId)
    await assertOwnKey({ db: trx }, userId, parentKeyId)
    await updateUser(trx, userId, { active_key_id: parentKeyId })
  })
  deps.users.invalidate()
}

/**
 * Claims a parent key for a user and makes it the active key. Moves everything from the user's automatic key
 * to it, and revokes the automatic key.
 */
export async function claimKey(
  deps: Dependencies,
  actor: Actor,
  userId: string,
  secret: string,
): Promise<Claim> {
  const text = await prepareClaim(deps, secret)
  const { claim, retired, id } = await deps.db
    .transaction()
    .execute((trx) => claimWithin({ ...deps, db: trx }, actor, userId, text))
  if (retired !== null) await deps.conversations.deletions.moveTenant(retired, id)
  deps.keys.invalidate()
  deps.agents.invalidate()
  deps.usage.invalidate()
  deps.webhooks.invalidate()
  return claim
}

/**
 * Runs the claim in a transaction, rolls it back and returns the result.
 * @throws the same errors as `claimKey`.
 */
async function previewClaim(
  deps: Dependencies,
  actor: Actor,
  userId: string,
  secret: string,
): Promise<Claim> {
  const text = await prepareClaim(deps, secret)
  const trx = await deps.db.startTransaction().execute()
  try {
    return (await claimWithin({ ...deps, db: trx }, actor, userId, text)).claim
  } finally {
    await trx.rollback().execute()
  }
}

async function prepareClaim({ usage }: Dependencies, secret: string): Promise<string> {
  const text = secret.trim()
  assertParentKey(text)
  await usage.flush()
  return text
}

async function claimWithin(deps: Dependencies, actor: Actor, userId: string, text: string) {
  await lockUser(deps.db, userId)
  const { id, wasOwn } = await claimParentKey(deps, text, userId)
  if (wasOwn) return { claim: { parent_key: renderParentKey(id), moved: nothing }, retired: null, id }
  const { moved, retired } = await moveAutomatic(deps, actor, userId, id)
  await updateUser(deps.db, userId, { active_key_id: id })
  const target = { kind: 'key', id } as const
  await recordAudit(deps, actor, { action: 'key.claim', target, tenantId: id, details: { retired, moved } })
  return { claim: { parent_key: renderParentKey(id), moved }, retired, id }
}

async function assertOwnKey(
  deps: Pick<Dependencies, 'db'>,
  userId: string,
  parentKeyId: string,
): Promise<void> {
  const keys = await listKeysOfUser(deps, userId)
  if (keys.some(({ id }) => id === parentKeyId)) return
  throw new ServiceError('not_found', 'parent_key_id: must be the id of one of your keys', {
    param: 'parent_key_id',
  })
}

const nothing: Moved = { agents: 0, files: 0, artifacts: 0, usage_days: 0, usage_calls: 0 }

/**
 * Moves everything from the user's automatic key, if there is one, to the claimed key, and revokes the
 * automatic key.
 */
async function moveAutomatic(
  deps: Dependencies,
  actor: Actor,
  userId: string,
  toTenantId: string,
): Promise<{ moved: Moved; retired: string | null }> {
  const keys = await listKeysOfUser(deps, userId)
  const automatic = keys.find((key) => key.is_automatic === 1)
  if (automatic === undefined) return { moved: nothing, retired: null }
  // Waits for transactions that are adding data to the automatic key, so that their rows are moved too.
  await lockTenant(deps, automatic.id)
  const moved = await moveEverything(deps, actor, automatic.id, toTenantId)
  await retireParentKey(deps, automatic.id)
  return { moved, retired: automatic.id }
}

/** Requires a transaction in `deps.db`. */
async function moveEverything(deps: Dependencies, actor: Actor, from: string, to: string): Promise<Moved> {
  const { db: trx } = deps
  const ids = await moveAgents(trx, from, to)
  const files = await moveFiles(trx, from, to)
  const artifacts = await moveArtifacts(trx, from, to)
  await moveWebhooks(trx, from, to)
  const { days: usage_days, calls: usage_calls } = await moveUsage(trx, from, to)
  // After the usage, with which a new budget starts.
  await addDefaultBudgets({ ...deps, usage: { sumSpent } }, actor, to, ids)
  return { agents: ids.length, files, artifacts, usage_days, usage_calls }
}

const parent = { callers: ['parent'] } as const
const user = { ...parent, needs: 'user' } as const

const { query, mutation } = operationsOf<Dependencies>()('Manager', user)

export const managerOperations = {
  me: query({
    http: { method: 'GET', path: '/v1/manager/me' },
    auth: parent,
    docs: { summary: "Get the signed-in user and the user's keys" },
    input: z.object({}),
    output: Me,
    run: ({ context: { deps, caller } }) => readMe(deps, caller),
  }),

  signIn: mutation({
    http: { method: 'POST', path: '/v1/manager/sign-in' },
    auth: { callers: [] },
    docs: {
      summary: 'Sign in with a one-time link',
      description:
        'The server prints a link at its first start. `parley sign-in` prints another one. The response sets a session cookie.',
      failures: {
        401: 'The link was already used or has expired.',
        429: 'Too many sign-in attempts with invalid links from this address.',
      },
    },
    input: SignIn,
    output: SignedIn,
    run: async ({ context, input }) => {
      const cookie = await signIn(context.deps, input.link, context.metadata).catch(async (thrown) => {
        if (toServiceError(thrown).reason === 'invalid_api_key') await limitAuthFailures(context)
        throw thrown
      })
      context.setHeader('Set-Cookie', cookie)
      return { signed_in: true } as const
    },
  }),

  signOut: mutation({
    http: { method: 'POST', path: '/v1/manager/sign-out' },
    docs: { summary: 'Sign out of this browser' },
    input: z.object({}),
    output: SignedOut,
    run: async ({ context }) => {
      context.setHeader('Set-Cookie', await signOut(context.deps, context.metadata.implicit?.headers ?? {}))
      return { signed_out: true } as const
    },
  }),

  activeKey: mutation({
    http: { method: 'POST', path: '/v1/manager/active-key' },
    docs: {
      summary: "Switch to another of the user's keys",
      failures: { 404: "The id does not belong to one of the user's keys." },
    },
    input: KeyChoice,
    output: Me,
    run: async ({ context: { deps, caller }, input }) => {
      await chooseKey(deps, userOf(caller).id, input.parent_key_id)
      return readMe(deps, { ...caller, tenantId: input.parent_key_id })
    },
  }),

  checkPage: mutation({
    input: PageToCheck,
    output: CheckedPage,
    run: ({ context: { deps }, input: { url, parent_origin: parentOrigin } }) =>
      checkPageFraming({ url, parentOrigin, allow: deps.config.webhooks.allow }),
  }),

  createKey: mutation({
    input: KeyCreation,
    output: KeyCreated,
    run: async ({ context, input: { name } }) => {
      const { deps, caller } = context
      const key = await createParentKey(deps, actorOf(context), name, userOf(caller).id)
      return { id: key.publicId, name, key: key.text, key_hint: key.hint }
    },
  }),

  rotateKey: mutation({
    input: OwnKeyRotation,
    output: ParentKeyRotated,
    run: async ({ context, input: { parent_key_id: id, overlap_seconds: overlapSeconds } }) => {
      const { deps, caller } = context
      await assertOwnKey(deps, userOf(caller).id, id)
      const rotation = await rotateParentKey(deps, actorOf(context), id, overlapSeconds)
      return { key: rotation.key.text, ...renderRotation(rotation) }
    },
  }),

  revokeKey: mutation({
    input: KeyChoice,
    output: OwnKeyRevoked,
    run: async ({ context, input: { parent_key_id: id } }) => {
      const { deps, caller } = context
      await assertOwnKey(deps, userOf(caller).id, id)
      await revokeParentKey(deps, actorOf(context), id)
      return { id, revoked: true } as const
    },
  }),

  previewClaim: mutation({
    input: KeyClaim,
    output: ClaimPreview,
    run: ({ context, input }) => {
      const { deps, caller } = context
      return previewClaim(deps, actorOf(context), userOf(caller).id, input.parent_key)
    },
  }),

  claimKey: mutation({
    http: { method: 'POST', path: '/v1/manager/claim-key' },
    docs: {
      summary: 'Claim a parent key',
      description: 'Moves all objects of the automatic key to the claimed key. Agent keys remain valid.',
      failures: {
        400: 'The text is not a complete parent key (`invalid_parent_key`), or the request is malformed.',
        404: 'The key does not exist or was revoked (`parent_key_not_found`).',
        409: 'The key belongs to another user (`parent_key_already_claimed`).',
      },
    },
    input: KeyClaim,
    output: KeyClaimed,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const claim = await claimKey(deps, actorOf(context), userOf(caller).id, input.parent_key)
      return { claimed: true as const, ...claim }
    },
  }),
}

function userOf({ user }: ParentCaller): ConsoleUser {
  if (user === undefined)
    throw new Error('the operation reads the user, but its auth policy does not require one')
  return user
}
