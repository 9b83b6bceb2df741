/** Schemas for input that is bounded in size: every list, record and string of an input has a limit, or is marked as content. */
import { z } from 'zod'
import { isJsonObject } from './formats/json.ts'

/** What bounds a schema that has no length limit itself; the test of all input schemas accepts only these. */
export const boundElsewhere = z.registry<{ readonly by: string }>()

/** Content such as a base64 image: as long as the limit of the body allows. */
export const longText = () => z.string().register(boundElsewhere, { by: 'the limit of the body' })

/** A JSON object that passes through as it is, such as a JSON Schema; its members are not looked at. */
export function jsonObject() {
  return z
    .custom<Record<string, unknown>>(isJsonObject, {
      error: ({ input }) => (input === undefined ? 'is required' : 'must be an object'),
    })
    .meta({ override: { type: 'object', additionalProperties: {} } })
}

export const label = () => z.string().max(1024)

/** An id that a client or a provider made; some providers put signatures into the ids of tool calls. */
export const foreignId = () => z.string().max(65_536)

/** The id of an agent, a file or a key. As long as a request target, so that an id of any length is an unknown one. */
export const reference = () => z.string().max(8192)

export const modelId = () => z.string().min(1).max(300)

/** A record with at most `mostKeys` keys, which are counted before any of them is looked at. */
export function recordOf<Value extends z.ZodType>(key: z.ZodString, value: Value, mostKeys: number) {
  const record = z.record(key, value).register(boundElsewhere, { by: `a limit of ${mostKeys} keys` })
  return z.preprocess((given, context) => {
    if (!isJsonObject(given) || Object.keys(given).length <= mostKeys) return given
    context.addIssue(`has more than ${mostKeys} keys`)
    return z.NEVER
  }, record)
}
