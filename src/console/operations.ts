/** The console's own operations: the caller, their sign-in and their parent keys. */
import { z } from 'zod'
import { actorOf } from '../identity/audit.ts'
import { ParentKeyRotated, renderRotation } from '../identity/key-schema.ts'
import { createParentKey, revokeParentKey, rotateParentKey } from '../identity/keys.ts'
import { signIn, signOut } from '../identity/sessions.ts'
import { type ConsoleUser, operationsOf, type ParentCaller } from '../operations/operation.ts'
import { assertOwnKey, chooseKey, claimKey, previewClaim, readMe } from './console.ts'
import type { Dependencies } from './dependencies.ts'
import {
  ClaimPreview,
  KeyChoice,
  KeyClaim,
  KeyClaimed,
  KeyCreated,
  KeyCreation,
  Me,
  OwnKeyRevoked,
  OwnKeyRotation,
  renderClaim,
  SignedIn,
  SignedOut,
  SignIn,
} from './schema.ts'

const parent = { callers: ['parent'] } as const
const user = { ...parent, needs: 'user' } as const

const { query, mutation } = operationsOf<Dependencies>()('Manager', user)

export const managerOperations = {
  me: query({
    http: { method: 'GET', path: '/v1/manager/me' },
    auth: parent,
    docs: { summary: 'Read who is calling, and their keys' },
    input: z.object({}),
    output: Me,
    run: ({ context: { deps, caller } }) => readMe(deps, caller),
  }),

  signIn: mutation({
    http: { method: 'POST', path: '/v1/manager/sign-in' },
    auth: { callers: [] },
    docs: {
      summary: 'Begin a session with a one-time link',
      description:
        'The link is printed by the first start and by `parley sign-in`; the answer sets a cookie.',
      failures: { 401: 'The link was used already, or is too old.' },
    },
    input: SignIn,
    output: SignedIn,
    run: async ({ context, input }) => {
      context.setHeader('Set-Cookie', await signIn(context.deps, input.link, context.metadata))
      return { signed_in: true } as const
    },
  }),

  signOut: mutation({
    http: { method: 'POST', path: '/v1/manager/sign-out' },
    docs: { summary: 'End the session of this browser' },
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
      summary: "Work with another of the user's keys",
      failures: { 404: "None of the user's keys." },
    },
    input: KeyChoice,
    output: Me,
    run: async ({ context: { deps, caller }, input }) => {
      await chooseKey(deps, userOf(caller).id, input.parent_key_id)
      return readMe(deps, { ...caller, tenantId: input.parent_key_id })
    },
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
    run: async ({ context, input }) => {
      const { deps, caller } = context
      return renderClaim(await previewClaim(deps, actorOf(context), userOf(caller).id, input.parent_key))
    },
  }),

  claimKey: mutation({
    http: { method: 'POST', path: '/v1/manager/claim-key' },
    docs: {
      summary: "Make a parent key one's own",
      description: 'What the automatic key owns goes over to it; agent keys go on working.',
      failures: {
        400: 'Not a whole parent key (`invalid_parent_key`), or the request is malformed.',
        404: 'Unknown or revoked (`parent_key_not_found`).',
        409: "Another user's (`parent_key_already_claimed`).",
      },
    },
    input: KeyClaim,
    output: KeyClaimed,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const claim = await claimKey(deps, actorOf(context), userOf(caller).id, input.parent_key)
      return { claimed: true as const, ...renderClaim(claim) }
    },
  }),
}

/** The user of an operation with `needs`. */
function userOf({ user }: ParentCaller): ConsoleUser {
  if (user === undefined) throw new Error('an operation reads the user but its auth policy does not need one')
  return user
}
