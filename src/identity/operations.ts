/** Defines the operations that check and rotate the caller's key. */
import { z } from 'zod'
import { operationsOf } from '../operations/operation.ts'
import { actorOf } from './audit.ts'
import type { KeyDirectory } from './authenticate.ts'
import type { Dependencies } from './dependencies.ts'
import { KeyRotation, KeyValidity, ParentKeyRotated, renderRotation } from './key-schema.ts'
import { rotateParentKey } from './keys.ts'

const { query, mutation } = operationsOf<Dependencies & { readonly keys: KeyDirectory }>()('Keys', {
  callers: ['parent'],
})

export const keysOperations = {
  validate: query({
    http: { method: 'GET', path: '/v1/keys/validate' },
    auth: { callers: ['parent', 'agent'] },
    docs: { summary: 'Check an API key' },
    input: z.object({}),
    output: KeyValidity,
    run: ({ context }) => ({ valid: true as const, kind: context.caller.kind }),
  }),

  rotate: mutation({
    http: { method: 'POST', path: '/v1/keys/rotate' },
    docs: { summary: 'Rotate a parent key' },
    input: KeyRotation,
    output: ParentKeyRotated,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const rotation = await rotateParentKey(deps, actorOf(context), caller.tenantId, input.overlap_seconds)
      return { key: rotation.key.text, ...renderRotation(rotation) }
    },
  }),
}
