/** Looks into values that a page passes. */

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** Whether it is an object of named values, and no list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
