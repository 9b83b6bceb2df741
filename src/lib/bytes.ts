/** Converts between kinds of byte arrays. */

/**
 * Returns the bytes as a Buffer without copying them. Returns a Buffer itself, because creating a view of it
 * costs as much as decoding it.
 */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
