/** Defines the schemas of the key operations. */
import { z } from 'zod'
import { reference } from '../lib/schema-bounds.ts'
import { type ParentKeyRow, stateOf } from './key-store.ts'
import type { Rotation } from './keys.ts'

export const KeyValidity = z
  .strictObject({ valid: z.literal(true), kind: z.enum(['parent', 'agent']) })
  .meta({
    id: 'KeyValidity',
    description: 'The kind of a valid key. For an invalid key, the server returns 401.',
  })

const overlapSeconds = z
  .int()
  .min(0)
  .max(2_592_000)
  .default(0)
  .meta({ description: 'Seconds for which the previous secret remains valid; 0 revokes it immediately.' })

export const KeyRotation = z.strictObject({ overlap_seconds: overlapSeconds }).meta({ id: 'KeyRotation' })

const rotated = {
  key_hint: z.string().meta({ description: "The new key's prefix and last four characters." }),
  rotated_at: z.int().meta({ description: 'Unix seconds.' }),
  previous_valid_until: z
    .int()
    .meta({ description: 'Time until which the previous secret remains valid, in Unix seconds.' }),
}

export const ParentKeyRotated = z
  .strictObject({ key: z.string().meta({ description: 'The new parent key; shown only once.' }), ...rotated })
  .meta({ id: 'ParentKeyRotated' })

export const AgentKeyRotated = z
  .strictObject({ agent_id: z.string(), agent_key: z.string(), ...rotated })
  .meta({ id: 'AgentKeyRotated' })

export const KeyName = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(200, 'must be at most 200 characters')
  .refine(
    (name) => !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name),
    'must not contain line breaks or control characters',
  )

const seconds = z.int().meta({ description: 'Unix seconds.' })

/** The end of the year 9999. */
const LAST_SECOND = 253_402_300_799

const expiresAt = z.int().min(1).max(LAST_SECOND).nullable().meta({
  description:
    'Unix seconds from which the key, its agent keys and its tokens are rejected; null if the key does not expire.',
})

const ownLimit = (what: string, setting: string) =>
  z
    .int()
    .min(1)
    .max(1_000_000_000)
    .nullable()
    .meta({ description: `${what}; null if only \`${setting}\` applies.` })

const ownSettings = {
  expires_at: expiresAt,
  requests_per_minute: ownLimit('Maximum number of requests per minute', 'PARLEY_RATE_LIMIT_PARENT'),
  max_streams: ownLimit('Maximum number of concurrent streams', 'PARLEY_MAX_STREAMS_PARENT'),
}

export const ParentKeyCreation = z
  .strictObject({ name: KeyName, ...z.strictObject(ownSettings).partial().shape })
  .meta({ id: 'ParentKeyCreation' })
export type ParentKeyCreation = z.output<typeof ParentKeyCreation>

export const ParentKeyChanges = ParentKeyCreation.partial().meta({
  id: 'ParentKeyChanges',
  description: 'Fields to change; absent fields stay unchanged.',
})
export type ParentKeyChanges = z.output<typeof ParentKeyChanges>

const keyId = reference().meta({ description: 'Id of a parent key: its 12 public characters.' })

export const ParentKeyReference = z.strictObject({ key_id: keyId })

export const ParentKeyUpdate = ParentKeyChanges.extend(ParentKeyReference.shape)

export const ParentKeyRotation = KeyRotation.extend(ParentKeyReference.shape)

export const ParentKeyListQuery = z.strictObject({
  limit: z.int().min(1).max(100).default(50).meta({ description: 'Maximum number of keys to return.' }),
  after: reference().optional().meta({ description: 'Id of a key; returns only older keys.' }),
})

const parentKey = {
  id: keyId,
  key_hint: z.string().meta({ description: 'Prefix and last four characters of the newest secret.' }),
  name: z.string(),
  state: z.enum(['active', 'disabled', 'expired', 'revoked']).meta({
    description: 'The server accepts the key, its agent keys and its tokens only in the state `active`.',
  }),
  ...ownSettings,
  can_manage_keys: z.boolean().meta({
    description: 'True if the key may create other keys and manage those that it created.',
  }),
  managed_by: z
    .string()
    .nullable()
    .meta({ description: 'Id of the parent key that created this key; null if no key did.' }),
  created_at: seconds,
  rotated_at: seconds.nullable(),
  disabled_at: seconds.nullable(),
  revoked_at: seconds.nullable(),
  last_used_at: seconds.nullable().meta({ description: 'Unix seconds; up to a minute out of date.' }),
}

export const ParentKey = z.strictObject(parentKey).meta({ id: 'ParentKey' })

export const ParentKeyCreated = z
  .strictObject({
    key: z.string().meta({ description: 'The parent key. It is shown only once.' }),
    ...parentKey,
  })
  .meta({ id: 'ParentKeyCreated' })

export const ParentKeyList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(ParentKey),
    has_more: z.boolean().meta({ description: 'True if there are older keys.' }),
  })
  .meta({ id: 'ParentKeyList' })

export const KeyRevoked = z.strictObject({ id: keyId, revoked: z.literal(true) }).meta({ id: 'KeyRevoked' })

export function renderParentKeyRow(row: ParentKeyRow, now: number): z.output<typeof ParentKey> {
  const { id, hint, name, expires_at, requests_per_minute, max_streams, managed_by } = row
  const { created_at, rotated_at, disabled_at, revoked_at, last_used_at } = row
  return {
    id,
    key_hint: hint,
    name,
    state: stateOf(row, now),
    expires_at,
    requests_per_minute,
    max_streams,
    can_manage_keys: row.can_manage_keys === 1,
    managed_by,
    created_at,
    rotated_at,
    disabled_at,
    revoked_at,
    last_used_at,
  }
}

export function renderRotation({ key, rotatedAt, previousValidUntil }: Rotation) {
  return { key_hint: key.hint, rotated_at: rotatedAt, previous_valid_until: previousValidUntil }
}
