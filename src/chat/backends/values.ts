/** Small looks into JSON whose shape nobody has promised. */

/** A JSON object of unknown fields. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Tells whether a JSON value is an object (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The objects of a JSON array; nothing when the value is no array. */
export function listObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

/** The strings of a value that may be one string, an array holding some, or neither. */
export function listStrings(value: unknown): readonly string[] {
  const values = Array.isArray(value) ? value : [value]
  return values.filter((item) => typeof item === 'string')
}

/** The value when it is an integer of at least `smallest`; undefined for null, text and everything else. */
export function toCount(value: unknown, smallest: number): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= smallest ? value : undefined
}

/** The text of a message's content: the string itself, or its text parts with a space between them. */
export function toText(content: unknown): string {
  if (typeof content === 'string') return content
  return listObjects(content)
    .flatMap((part) => listStrings(part.text))
    .join(' ')
}
