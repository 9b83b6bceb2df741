/** The vocabulary of an agent's fields: texts, lists and mappings whose faults read as sentences. */
import { z } from 'zod'

const longestLabel = 200

export const Text = z.string({ error: orMissing('must be a string') })

export const FilledText = Text.refine((text) => text.trim() !== '', 'must not be blank')

/** What may stand in a heading or a menu. Security: 2.5 (names). */
export const Label = FilledText.refine(
  (text) => !/\p{Cc}/u.test(text),
  'must not contain control characters',
).refine(
  (text) => text.length <= longestLabel || [...text].length <= longestLabel,
  `must be at most ${longestLabel} characters`,
)

export function listOf<Item extends z.ZodType>(item: Item): z.ZodArray<Item> {
  return z.array(item, { error: orMissing('must be a list') })
}

/** A mapping in which a null is as good as leaving its key out. */
export function mappingOf<Fields extends z.ZodObject>(fields: Fields) {
  return z.preprocess((value) => withoutNulls(value, Object.keys(fields.shape)), fields)
}

/** A record without those of its keys that hold null; anything else as it is. */
export function withoutNulls(value: unknown, keys: readonly string[]): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).filter(([key, held]) => held !== null || !keys.includes(key)),
  )
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function orMissing(problem: string): z.core.$ZodErrorMap {
  return (issue) => (issue.input === undefined ? 'is required' : problem)
}
