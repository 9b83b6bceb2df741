/** Parses an embedding list without copying or decoding its vectors. */

export type Encoding = 'float' | 'base64'

/**
 * Returns the list with empty vectors, which is much faster than a full parse. Returns undefined for any
 * other encoding or invalid JSON.
 */
export function readOutline(pieces: readonly Uint8Array[], encoding: Encoding): unknown {
  const reader = new OutlineReader(encoding)
  const isAsWanted = pieces.every((piece) =>
    reader.read(Buffer.from(piece.buffer, piece.byteOffset, piece.length)),
  )
  return isAsWanted ? reader.end() : undefined
}

const vectorKey = Buffer.from('"embedding"')
const delimiters = {
  float: { open: 0x5b, close: 0x5d, empty: '[]' },
  base64: { open: 0x22, close: 0x22, empty: '""' },
} as const
const COLON = 0x3a
const SPACE = 0x20
const [LOWER_N, UPPER_N] = [0x6e, 0x4e]
/** Maximum white space around a colon, in bytes; a list with more is parsed in full. */
const MOST_CARRIED_BYTES = 256
const none = Buffer.alloc(0)

class OutlineReader {
  private readonly encoding: Encoding
  private outline = ''
  private isInVector = false
  /** The end of the previous chunk, which may contain the start of a vector's key. */
  private carried: Buffer = none

  constructor(encoding: Encoding) {
    this.encoding = encoding
  }

  read(piece: Buffer): boolean {
    const bytes = this.carried.length === 0 ? piece : Buffer.concat([this.carried, piece])
    this.carried = none
    for (let at: number | undefined = 0; at !== bytes.length; ) {
      at = this.isInVector ? this.passVector(bytes, at) : this.passOutline(bytes, at)
      if (at === undefined) return false
    }
    return this.carried.length <= MOST_CARRIED_BYTES
  }

  end(): unknown {
    if (this.isInVector) return undefined
    try {
      return JSON.parse(this.outline + this.carried.toString('latin1'))
    } catch {
      return undefined
    }
  }

  private passVector(bytes: Buffer, from: number): number | undefined {
    const found = bytes.indexOf(delimiters[this.encoding].close, from)
    this.isInVector = found === -1
    const end = this.isInVector ? bytes.length : found
    const vector = bytes.subarray(from, end)
    // Returns undefined for a vector with `null` or Python's `NaN`, which needs a full parse.
    if (this.encoding === 'float' && (vector.includes(LOWER_N) || vector.includes(UPPER_N))) return undefined
    return this.isInVector ? end : end + 1
  }

  private passOutline(bytes: Buffer, from: number): number | undefined {
    const { open, empty } = delimiters[this.encoding]
    for (let key = bytes.indexOf(vectorKey, from); key !== -1; key = bytes.indexOf(vectorKey, key + 1)) {
      const colon = skipSpace(bytes, key + vectorKey.length)
      // Skips `"object": "embedding"`, where the text is a value and not a key.
      if (colon < bytes.length && bytes[colon] !== COLON) continue
      const start = skipSpace(bytes, colon + 1)
      if (start >= bytes.length) return this.carry(bytes, from, key)
      if (bytes[start] !== open) return undefined
      this.outline += bytes.toString('latin1', from, start) + empty
      this.isInVector = true
      return start + 1
    }
    return this.carry(bytes, from, Math.max(from, bytes.length - vectorKey.length + 1))
  }

  /**
   * Carries the bytes from `keptFrom` over to the next chunk. Decodes as Latin-1 to preserve split
   * characters.
   */
  private carry(bytes: Buffer, from: number, keptFrom: number): number {
    this.outline += bytes.toString('latin1', from, keptFrom)
    this.carried = bytes.subarray(keptFrom)
    return bytes.length
  }
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from
  while ((bytes[at] ?? COLON) <= SPACE) at += 1
  return at
}
