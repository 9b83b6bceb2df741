/** Schemas for input that is bounded in size: every list, record and string of an input has a limit, or is marked as content. */
import { z } from 'zod'
import { isJsonObject } from './formats/json.ts'

/** What bounds a schema that has no length limit itself; the test of all input schemas accepts only these. */
export const boundElsewhere = z.registry<{ readonly by: string }>()

/** Longest name, type or other word of a request. */
const MAX_LABEL = 1024
/** Longest id: some providers carry signatures inside the ids of tool calls. */
const MAX_ID = 65_536
/** Longest id in a path or a query: as long as a request target, so that an id of any length is an unknown one. */
const MAX_REFERENCE = 8192
/** Longest id of a model in a body. */
const MAX_MODEL_ID = 300

/** Content such as a base64 image: as long as the limit of the body allows. */
export function longText() {
  return z.string().register(boundElsewhere, { by: 'the limit of the body' })
}

/** A JSON object that passes through as it is, such as a JSON Schema; its members are not looked at. */
export function jsonObject() {
  return z
    .custom<Record<string, unknown>>(isJsonObject, {
      error: ({ input }) => (input === undefined ? 'is required' : 'must be an object'),
    })
    .meta({ override: { type: 'object', additionalProperties: {} } })
}

/** A name, a type or another word, in a field that is not content. */
export function label() {
  return z.string().max(MAX_LABEL)
}

export function foreignId() {
  return z.string().max(MAX_ID)
}

/** The id of something that this server may or may not have: an agent, a file, a key. */
export function reference() {
  return z.string().max(MAX_REFERENCE)
}

export function modelId() {
  return z.string().min(1).max(MAX_MODEL_ID)
}

/** A record with at most `mostKeys` keys, which are counted before any of them is looked at. */
export function recordOf<Value extends z.ZodType>(key: z.ZodString, value: Value, mostKeys: number) {
  const record = z.record(key, value).register(boundElsewhere, { by: `a limit of ${mostKeys} keys` })
  return z.preprocess((given, context) => {
    if (!isJsonObject(given) || Object.keys(given).length <= mostKeys) return given
    context.addIssue(`has more than ${mostKeys} keys`)
    return z.NEVER
  }, record)
}
