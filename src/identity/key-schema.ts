/** Defines the schemas of the key operations. */
import { z } from 'zod'
import type { Rotation } from './keys.ts'

export const KeyValidity = z
  .strictObject({ valid: z.literal(true), kind: z.enum(['parent', 'agent']) })
  .meta({ id: 'KeyValidity', description: 'The key is valid and has this kind.' })

const overlapSeconds = z
  .int()
  .min(0)
  .max(2_592_000)
  .default(0)
  .meta({ description: 'Seconds for which the previous secret keeps working; 0 revokes it immediately.' })

export const KeyRotation = z.strictObject({ overlap_seconds: overlapSeconds }).meta({ id: 'KeyRotation' })

const rotated = {
  key_hint: z.string().meta({ description: "The new key's prefix and last four characters." }),
  rotated_at: z.int().meta({ description: 'Unix seconds.' }),
  previous_valid_until: z
    .int()
    .meta({ description: 'Unix seconds until which the previous secret keeps working.' }),
}

export const ParentKeyRotated = z
  .strictObject({ key: z.string().meta({ description: 'The new parent key; shown only once.' }), ...rotated })
  .meta({ id: 'ParentKeyRotated' })

export const AgentKeyRotated = z
  .strictObject({ agent_id: z.string(), agent_key: z.string(), ...rotated })
  .meta({ id: 'AgentKeyRotated' })

export function renderRotation({ key, rotatedAt, previousValidUntil }: Rotation) {
  return { key_hint: key.hint, rotated_at: rotatedAt, previous_valid_until: previousValidUntil }
}
