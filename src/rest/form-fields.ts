/** Turns the parts of a form into fields, as the clients of the third-party API write them. */
import { ServiceError } from '../errors.ts'

/**
 * The fields by name: `expires_after[seconds]` is the field `seconds` of `expires_after`, and a value that is a JSON object is
 * that object; `whole` are fields that are values already. Decision: 8 (as the third-party API has it).
 * @throws ServiceError `invalid_value` when a field comes twice.
 */
export function toFields(
  entries: readonly [string, string][],
  whole: readonly [string, unknown][],
): Record<string, unknown> {
  const fields = new Map<string, unknown>(whole)
  for (const [name, value] of entries) {
    const [, outer, inner] = /^(\w+)\[(\w+)\]$/.exec(name) ?? []
    const parent = outer === undefined ? fields : (fields.get(outer) ?? new Map())
    if (!(parent instanceof Map) || parent.has(inner ?? name)) throw badPart('it is there twice', name)
    parent.set(inner ?? name, toValue(value))
    if (outer !== undefined) fields.set(outer, parent)
  }
  return toObject(fields)
}

function toObject(fields: Map<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    [...fields].map(([name, value]) => [name, value instanceof Map ? toObject(value) : value]),
  )
}

function toValue(text: string): unknown {
  if (!text.startsWith('{')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * The name as it was sent, without the folders before it (RFC 7578, 4.2). Browsers and the official clients write a quote as
 * `%22`; their escapes for line breaks stay as they are, because a name has none.
 */
export function toFilename(sent: string | undefined): string {
  const name = sent?.replace(/^.*[/\\]/s, '').replaceAll('%22', '"') ?? ''
  return name === '' || name === '.' || name === '..' ? 'unnamed' : name
}

/** The failure for a form that is not as it should be, naming the part at fault. */
export function badPart(what: string, part?: string): ServiceError {
  if (part === undefined) return new ServiceError('invalid_value', what)
  return new ServiceError('invalid_value', `${part}: ${what}`, { param: part })
}
