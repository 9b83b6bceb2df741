/** Validates and copies values that the page and the frame exchange. */

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** Returns whether the value is an object, but not an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Maximum size of a context or tool result, in UTF-8 bytes. */
const MAX_BYTES = 64 * 1024

export function isWithinLimit(value: unknown): boolean {
  return new TextEncoder().encode(isText(value) ? value : JSON.stringify(value)).length <= MAX_BYTES
}

/** Returns a copy made through JSON, without functions and other values that JSON cannot represent. */
export function toPlain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value))
}

/**
 * Returns an agent key's prefix and public id, which identify its agent, or an empty string for any other
 * text.
 */
export function publicPartOf(key = ''): string {
  return /^agnt_key-[0-9A-Za-z]{12}/.exec(key)?.[0] ?? ''
}

/**
 * Returns 128 random bits. Does not use `crypto.randomUUID`, which needs a secure context; pages in local
 * networks often lack one.
 */
export function newId(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join()
}

/** Returns a random UUID (RFC 9562, version 4), even where `crypto.randomUUID` does not exist. */
export function newUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  const hex = Array.from(bytes, (byte, index) => {
    const marked = index === 6 ? (byte & 0x0f) | 0x40 : index === 8 ? (byte & 0x3f) | 0x80 : byte
    return marked.toString(16).padStart(2, '0')
  }).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
