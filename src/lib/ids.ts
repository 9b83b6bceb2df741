/** Creates random base-62 ids. */

import { randomBytes } from 'node:crypto'

export const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns cryptographically secure random bytes; passed as a parameter so that tests can replace it. */
export type Random = (bytes: number) => Uint8Array

const POOL_BYTES = 4096
let pool = Buffer.alloc(0)

/** Fetches random bytes in blocks, because one system call takes as long as generating several ids. */
export const systemRandom: Random = (bytes) => {
  if (bytes > POOL_BYTES) return randomBytes(bytes)
  if (bytes > pool.length) pool = randomBytes(POOL_BYTES)
  const taken = pool.subarray(0, bytes)
  pool = pool.subarray(bytes)
  return taken
}

export function newId(prefix: string, length: number, random: Random): string {
  // Discards higher byte values, because they would make the first characters of the alphabet more likely.
  const usableBytes = 256 - (256 % ALPHABET.length)
  let text = prefix
  while (text.length < prefix.length + length) {
    for (const byte of random(prefix.length + length - text.length)) {
      if (byte < usableBytes) text += ALPHABET[byte % ALPHABET.length]
    }
  }
  return text
}
