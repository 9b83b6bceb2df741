/**
 * Defines schemas with size limits; every list, record and string in an input is limited or marked as
 * content.
 */
import { z } from 'zod'
import { isJsonObject } from './formats/json.ts'

/** Registers schemas without a length limit, with the reason; a test rejects all other unlimited schemas. */
export const boundElsewhere = z.registry<{ readonly by: string }>()

/** Content such as a base64 image, which is limited only by the body size. */
export const longText = () => z.string().register(boundElsewhere, { by: 'the body size limit' })

/** A JSON object that is not checked further, such as a JSON Schema. */
export function jsonObject() {
  return z
    .custom<Record<string, unknown>>(isJsonObject, {
      error: ({ input }) => (input === undefined ? 'is required' : 'must be an object'),
    })
    .meta({ override: { type: 'object', additionalProperties: {} } })
}

export const label = () => z.string().max(1024)

/** Rejects texts that databases cannot store: those that contain U+0000 or an unpaired surrogate. */
export const storable = (text: z.ZodString) =>
  text.refine(
    (value) => value.isWellFormed() && !value.includes('\0'),
    'must be well-formed Unicode without the character U+0000',
  )

/** Rejects control characters such as line breaks. */
export const singleLine = (text: z.ZodString) =>
  text.refine(
    (value) => value.isWellFormed() && !/\p{Cc}/u.test(value),
    'must not contain control characters',
  )

export const searchText = () =>
  z.string().min(1, 'must not be empty').max(200, 'must be at most 200 characters')

/** An id from a client or provider; some providers put signatures into tool call ids. */
export const foreignId = () => z.string().max(65_536)

/**
 * The id of an agent, file or key. Allows as many characters as a request target, so that an id in a path is
 * never rejected as too long.
 */
export const reference = () => z.string().max(8192)

export const modelId = () => z.string().min(1).max(300)

/** A record with at most `mostKeys` keys; counts the keys before it validates them. */
export function recordOf<Value extends z.ZodType>(key: z.ZodString, value: Value, mostKeys: number) {
  const record = z.record(key, value).register(boundElsewhere, { by: `a limit of ${mostKeys} keys` })
  return z.preprocess((given, context) => {
    if (!isJsonObject(given) || Object.keys(given).length <= mostKeys) return given
    context.addIssue(`has more than ${mostKeys} keys`)
    return z.NEVER
  }, record)
}
