/** Views a `Uint8Array` as a `Buffer` without copying it. */

/**
 * Returns the bytes as a Buffer without copying them. Returns a Buffer unchanged, because creating a view
 * takes time.
 */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
