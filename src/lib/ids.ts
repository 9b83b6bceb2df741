/** Ids: random text in base 62, and UUIDs. */

export const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * A new id: the prefix and `length` base62 characters, each equally likely. `random` must be chance indeed: bytes that would make
 * some characters likelier are drawn again.
 */
export function newId(prefix: string, length: number, random: Random): string {
  const fairBytes = 256 - (256 % ALPHABET.length)
  let text = prefix
  while (text.length < prefix.length + length) {
    for (const byte of random(prefix.length + length - text.length)) {
      if (byte < fairBytes) text += ALPHABET[byte % ALPHABET.length]
    }
  }
  return text
}

/** A new UUID (version 4). Protocol: RFC 9562, 5.4. */
export function newUuid(random: Random): string {
  const bytes = Buffer.from(random(16))
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** Cryptographic randomness, passed in wherever it is needed, so that tests can set it. */
export type Random = (bytes: number) => Uint8Array
