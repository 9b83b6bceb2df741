/** Finds the images, audio, files and tool results that an item contains as text. */
import { isJsonObject } from '../../lib/formats/json.ts'

/** Longer strings are stored as blobs, because large rows would slow down every list. */
export const MAX_INLINE_LENGTH = 32 * 1024

/** The fields of OpenAI's items that contain a data URL or base64. */
const dataFields: ReadonlySet<string> = new Set(['image_url', 'url', 'file_data', 'data'])

/**
 * Replaces each string in a data field, and the text output of a tool call. Returns the same object if
 * nothing changes.
 */
export function mapData<Item extends object>(item: Item, replace: (text: string) => string): Item {
  const mapped = mapValue(item, undefined, replace) as Item & {
    readonly type?: unknown
    readonly output?: unknown
  }
  if (mapped.type !== 'function_call_output' || typeof mapped.output !== 'string') return mapped
  // A tool's result can contain data in any form, such as JSON with base64.
  const output = replace(mapped.output)
  return output === mapped.output ? mapped : { ...mapped, output }
}

function mapValue(value: unknown, field: string | undefined, replace: (text: string) => string): unknown {
  if (typeof value === 'string') return field !== undefined && dataFields.has(field) ? replace(value) : value
  if (Array.isArray(value)) {
    const mapped = value.map((one) => mapValue(one, undefined, replace))
    return mapped.some((one, index) => one !== value[index]) ? mapped : value
  }
  if (!isJsonObject(value)) return value
  let changed: Record<string, unknown> | undefined
  for (const [name, one] of Object.entries(value)) {
    const mapped = mapValue(one, name, replace)
    if (mapped === one) continue
    changed ??= { ...value }
    changed[name] = mapped
  }
  return changed ?? value
}
