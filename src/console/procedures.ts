/** What callers may do in the console besides what a parent key may, over RPC and REST alike. */
import { z } from 'zod'
import { actorOf } from '../audit/actor.ts'
import type { ConsoleUser, ParentCaller } from '../keys/schema.ts'
import { defineOp } from '../rpc/op.ts'
import { router } from '../rpc/trpc.ts'
import { chooseKey, claimKey } from './keys.ts'
import { readOverview } from './overview.ts'
import { KeyChoice, KeyClaim, KeyClaimed, Me, renderClaim, renderMe } from './schema.ts'

const tag = 'Manager'
const parent = { errors: 'openai', callers: ['parent'] } as const
const user = { ...parent, needs: 'user' } as const

export const managerRouter = router({
  me: defineOp({
    kind: 'query',
    http: { method: 'GET', path: '/v1/manager/me', tag, summary: 'Read who is calling, and their keys' },
    wire: parent,
    input: z.object({}),
    output: Me,
    run: async ({ context: { deps, caller } }) => renderMe(await readOverview(deps, caller)),
  }),

  activeKey: defineOp({
    kind: 'mutation',
    http: {
      method: 'POST',
      path: '/v1/manager/active-key',
      tag,
      summary: "Work with another of the user's keys",
    },
    wire: { ...user, failures: { 404: "None of the user's keys." } },
    input: KeyChoice,
    output: Me,
    run: async ({ context: { deps, caller }, input }) => {
      await chooseKey(deps, userOf(caller).id, input.parent_key_id)
      return renderMe(await readOverview(deps, { ...caller, tenantId: input.parent_key_id }))
    },
  }),

  claimKey: defineOp({
    kind: 'mutation',
    http: {
      method: 'POST',
      path: '/v1/manager/claim-key',
      tag,
      summary: "Make a parent key one's own",
      description: 'What the automatic key owns goes over to it; agent keys go on working.',
    },
    wire: {
      ...user,
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
      return renderClaim(await claimKey(deps, actorOf(context), userOf(caller).id, input.parent_key))
    },
  }),
})

/** The user whom an operation needs. */
function userOf({ user }: ParentCaller): ConsoleUser {
  if (user === undefined) throw new Error('an operation asked for a user without needing one')
  return user
}
