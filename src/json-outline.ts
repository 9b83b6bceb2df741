/** Measures JSON before anything parses it: how deep it is nested, and how many values it holds. */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c

export interface JsonOutline {
  /** The depth of the deepest object or array. */
  readonly depth: number
  /** Objects, arrays, strings, numbers and literals; an empty object or array counts as two. */
  readonly values: number
}

/** The depth of the deepest object or array in JSON as UTF-8; meaningless for other bytes. */
export function depthOf(bytes: Uint8Array): number {
  return outlineOf(bytes).depth
}

/** The outline of JSON as UTF-8, in one pass that stops after `mostValues`; meaningless for other bytes. */
export function outlineOf(bytes: Uint8Array, mostValues = Number.POSITIVE_INFINITY): JsonOutline {
  let depth = 0
  let deepest = 0
  // Each bracket and each comma outside a string introduces at most one value after the first.
  let values = 1
  let isInString = false
  for (let at = 0; at < bytes.length && values <= mostValues; at++) {
    const byte = bytes[at] as number
    if (isInString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isInString = false
    } else if (byte === QUOTE) isInString = true
    else if (byte === COMMA) values += 1
    // `{` and `[`, `}` and `]` differ in one bit.
    else if ((byte | 0x20) === 0x7b) {
      values += 1
      deepest = Math.max(deepest, ++depth)
    } else if ((byte | 0x20) === 0x7d) depth -= 1
  }
  return { depth: deepest, values }
}
