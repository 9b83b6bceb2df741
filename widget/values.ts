/** Checks and copies values that the page and the frame exchange. */

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** Returns whether the value is an object, but not an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Limit of a context and of a tool result, in bytes of UTF-8. */
const MAX_BYTES = 64 * 1024

export function isWithinLimit(value: unknown): boolean {
  return new TextEncoder().encode(isText(value) ? value : JSON.stringify(value)).length <= MAX_BYTES
}

/** Returns a copy through JSON, without functions and other values that JSON cannot represent. */
export function toPlain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value))
}

/** The prefix and public id of an agent key, by which its agent is found; empty for any other text. */
export function publicPartOf(key = ''): string {
  return /^agnt_key-[0-9A-Za-z]{12}/.exec(key)?.[0] ?? ''
}

/** Returns 128 random bits; `crypto.randomUUID` needs a secure context, which pages in a local network often lack. */
export function newId(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join()
}
