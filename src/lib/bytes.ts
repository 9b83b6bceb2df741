/** Converts between kinds of byte arrays. */

/** Returns the same bytes as a Buffer, without a copy; creating a view of a Buffer costs as much as decoding it. */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
