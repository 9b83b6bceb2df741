/** Measures how deep JSON is nested before anything recursive looks at it. Security: 2.6. */

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The depth of the deepest object or array in JSON as UTF-8, in one pass; of other bytes it says nothing. */
export function depthOf(bytes: Uint8Array): number {
  let depth = 0
  let deepest = 0
  let isInString = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (isInString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isInString = false
    } else if (byte === QUOTE) isInString = true
    // `{` and `[`, `}` and `]` differ in one bit.
    else if ((byte | 0x20) === 0x7b) deepest = Math.max(deepest, ++depth)
    else if ((byte | 0x20) === 0x7d) depth -= 1
  }
  return deepest
}
