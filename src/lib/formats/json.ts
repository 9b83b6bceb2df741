/** Reads JSON values of unknown shape. */

export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export type Path = readonly PropertyKey[]

const longestSegment = 64

export const lineBreaks = /[\p{Cc}\p{Zl}\p{Zp}]+/gu

/** Renders a path as in code, such as `tools[0].inputSchema["a key"]`. */
export function renderPath(path: Path): string {
  return path.map(renderSegment).join('').replace(/^\./, '')
}

function renderSegment(segment: PropertyKey): string {
  if (typeof segment === 'number') return `[${segment}]`
  const key = shorten(String(segment), longestSegment)
  return /^[\w$-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key).replaceAll(lineBreaks, ' ')}]`
}

export function shorten(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest).toWellFormed()}…`
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c

export interface JsonOutline {
  readonly depth: number
  /** Number of objects, arrays, strings, numbers and literals; an empty object or array counts as two. */
  readonly values: number
}

/** Returns the depth of the deepest object or array; `bytes` must be JSON in UTF-8. */
export function depthOf(bytes: Uint8Array): number {
  return outlineOf(bytes).depth
}

/** Measures JSON in UTF-8 in one pass that stops after `mostValues` values. */
export function outlineOf(bytes: Uint8Array, mostValues = Number.POSITIVE_INFINITY): JsonOutline {
  let depth = 0
  let deepest = 0
  // Starts with one value; each opening bracket or comma outside a string adds at most one.
  let values = 1
  let isInString = false
  for (let at = 0; at < bytes.length && values <= mostValues; at++) {
    const byte = bytes[at] as number
    if (isInString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isInString = false
    } else if (byte === QUOTE) isInString = true
    else if (byte === COMMA) values += 1
    // `{` and `[` differ in one bit, as do `}` and `]`.
    else if ((byte | 0x20) === 0x7b) {
      values += 1
      deepest = Math.max(deepest, ++depth)
    } else if ((byte | 0x20) === 0x7d) depth -= 1
  }
  return { depth: deepest, values }
}

/**
 * Returns true if the length and the brackets of the text show that it exceeds neither limit. If false, the
 * text may still be within the limits. Much cheaper than an outline.
 */
export function isSurelyWithin(text: string, mostLevels: number, mostValues: number): boolean {
  if (text.length > mostValues) return false
  let openers = 0
  for (const opener of ['{', '[']) {
    for (let at = text.indexOf(opener); at !== -1; at = text.indexOf(opener, at + 1)) {
      openers += 1
      if (openers > mostLevels) return false
    }
  }
  return true
}

export function listObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

export function listStrings(value: unknown): readonly string[] {
  const values = Array.isArray(value) ? value : [value]
  return values.filter((item) => typeof item === 'string')
}

/** Returns a whole number that JavaScript can represent exactly; undefined for anything else. */
export function toCount(value: unknown, smallest: number): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= smallest ? value : undefined
}

/** Returns a message's text: the content string, or its text parts joined by spaces. */
export function toText(content: unknown): string {
  if (typeof content === 'string') return content
  return listObjects(content)
    .flatMap((part) => listStrings(part.text))
    .join(' ')
}

/** Parses JSON; returns undefined if the text is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
