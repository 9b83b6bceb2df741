/** Defines the operations that check and rotate the caller's key, and manage other keys. */
import { z } from 'zod'
import { unixSeconds } from '../lib/clock.ts'
import { operationsOf } from '../operations/operation.ts'
import { actorOf } from './audit.ts'
import type { KeyDirectory } from './authenticate.ts'
import type { Dependencies } from './dependencies.ts'
import {
  KeyRevoked,
  KeyRotation,
  KeyValidity,
  ParentKey,
  ParentKeyChanges,
  ParentKeyCreated,
  ParentKeyCreation,
  ParentKeyList,
  ParentKeyListQuery,
  ParentKeyReference,
  ParentKeyRotated,
  ParentKeyRotation,
  ParentKeyUpdate,
  renderParentKeyRow,
  renderRotation,
} from './key-schema.ts'
import { rotateParentKey } from './keys.ts'
import {
  createManagedKey,
  disableManagedKey,
  enableManagedKey,
  getManagedKey,
  listManagedKeys,
  managerOf,
  revokeManagedKey,
  rotateManagedKey,
  updateManagedKey,
} from './managed-keys.ts'

const { query, mutation } = operationsOf<Dependencies & { readonly keys: KeyDirectory }>()('Keys', {
  callers: ['parent'],
})

const notFound = {
  404: 'The key does not exist, the caller may not read it, or it was revoked and cannot be changed.',
}
const failures = { ...notFound, 403: 'The caller may read this key but not change it.' }

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
    docs: { summary: 'Rotate the calling parent key' },
    input: KeyRotation,
    output: ParentKeyRotated,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const rotation = await rotateParentKey(deps, actorOf(context), caller.tenantId, input.overlap_seconds)
      return { key: rotation.key.text, ...renderRotation(rotation) }
    },
  }),

  create: mutation({
    http: { method: 'POST', path: '/v1/keys' },
    response: { status: 201 },
    docs: {
      summary: 'Create a parent key',
      description:
        'The new key is a separate tenant. The calling key needs the permission to manage keys, which the operator grants with `parley keys update <id> --manage-keys`.',
      failures: { 403: 'The calling key may not create keys.' },
    },
    input: ParentKeyCreation,
    output: ParentKeyCreated,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const { key, row } = await createManagedKey(deps, actorOf(context), managerOf(caller), input)
      return { key: key.text, ...renderParentKeyRow(row, unixSeconds(deps.clock)) }
    },
  }),

  list: query({
    http: { method: 'GET', path: '/v1/keys' },
    docs: {
      summary: 'List the calling parent key and the keys that it manages',
      description: 'The newest keys come first. Revoked keys stay in the list.',
    },
    input: ParentKeyListQuery,
    output: ParentKeyList,
    run: async ({ context: { deps, caller }, input }) => {
      const { rows, hasMore } = await listManagedKeys(deps, managerOf(caller), input)
      const now = unixSeconds(deps.clock)
      return {
        object: 'list' as const,
        data: rows.map((row) => renderParentKeyRow(row, now)),
        has_more: hasMore,
      }
    },
  }),

  get: query({
    http: { method: 'GET', path: '/v1/keys/{key_id}' },
    docs: { summary: 'Get a parent key', failures: notFound },
    input: ParentKeyReference,
    output: ParentKey,
    run: async ({ context: { deps, caller }, input }) =>
      renderParentKeyRow(await getManagedKey(deps, managerOf(caller), input.key_id), unixSeconds(deps.clock)),
  }),

  update: mutation({
    http: { method: 'POST', path: '/v1/keys/{key_id}' },
    request: { bodySchema: ParentKeyChanges },
    docs: {
      summary: 'Change the name, expiry or limits of a parent key',
      description:
        'Absent fields stay unchanged. Null resets the expiry or the limit to that of the calling key, or removes it if the calling key has none. A limit cannot exceed the limit of the server or of the calling key.',
      failures,
    },
    input: ParentKeyUpdate,
    output: ParentKey,
    run: async ({ context, input: { key_id: id, ...changes } }) => {
      const { deps, caller } = context
      const row = await updateManagedKey(deps, actorOf(context), managerOf(caller), id, changes)
      return renderParentKeyRow(row, unixSeconds(deps.clock))
    },
  }),

  disable: mutation({
    http: { method: 'POST', path: '/v1/keys/{key_id}/disable' },
    docs: {
      summary: 'Disable a parent key',
      description: 'Rejects the key, its agent keys and its tokens until the key is enabled.',
      failures,
    },
    input: ParentKeyReference,
    output: ParentKey,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const row = await disableManagedKey(deps, actorOf(context), managerOf(caller), input.key_id)
      return renderParentKeyRow(row, unixSeconds(deps.clock))
    },
  }),

  enable: mutation({
    http: { method: 'POST', path: '/v1/keys/{key_id}/enable' },
    docs: { summary: 'Enable a disabled parent key', failures },
    input: ParentKeyReference,
    output: ParentKey,
    run: async ({ context, input }) => {
      const { deps, caller } = context
      const row = await enableManagedKey(deps, actorOf(context), managerOf(caller), input.key_id)
      return renderParentKeyRow(row, unixSeconds(deps.clock))
    },
  }),

  revoke: mutation({
    http: { method: 'POST', path: '/v1/keys/{key_id}/revoke' },
    docs: { summary: 'Permanently revoke a parent key and the keys of its agents', failures },
    input: ParentKeyReference,
    output: KeyRevoked,
    run: async ({ context, input: { key_id: id } }) => {
      const { deps, caller } = context
      await revokeManagedKey(deps, actorOf(context), managerOf(caller), id)
      return { id, revoked: true as const }
    },
  }),

  rotateManaged: mutation({
    http: { method: 'POST', path: '/v1/keys/{key_id}/rotate' },
    request: { bodySchema: KeyRotation },
    docs: { summary: 'Rotate the calling parent key or a key that it manages', failures: notFound },
    input: ParentKeyRotation,
    output: ParentKeyRotated,
    run: async ({ context, input: { key_id: id, overlap_seconds: overlapSeconds } }) => {
      const { deps, caller } = context
      const rotation = await rotateManagedKey(deps, actorOf(context), managerOf(caller), id, overlapSeconds)
      return { key: rotation.key.text, ...renderRotation(rotation) }
    },
  }),
}
