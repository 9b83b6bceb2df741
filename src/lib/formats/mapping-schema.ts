/** Creates schemas for the lists and mappings in YAML documents. */
import { z } from 'zod'
import { isJsonObject } from './json.ts'
import { orMissing } from './json-schema.ts'

export function listOf<Item extends z.ZodType>(item: Item): z.ZodArray<Item> {
  return z.array(item, { error: orMissing('must be a list') })
}

/** Creates a mapping schema that treats null values as absent. */
export function mappingOf<Fields extends z.ZodObject>(fields: Fields) {
  return z.preprocess((value) => withoutNulls(value, Object.keys(fields.shape)), fields)
}

export function withoutNulls(value: unknown, keys: readonly string[]): unknown {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).filter(([key, held]) => held !== null || !keys.includes(key)),
  )
}

/** The error for a mapping that rejects unknown keys. */
export function strictMapping(issue: z.core.$ZodRawIssue): string | undefined {
  return issue.code === 'unrecognized_keys' ? `has an unknown key '${issue.keys[0]}'` : 'must be a mapping'
}
