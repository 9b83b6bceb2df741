/** Reads what stands behind the question mark of an address: whatever is malformed counts as absent. */

export type RawSearch = Readonly<Record<string, unknown>>

/** Text; digits alone come as a number. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** One of these. */
export function oneOf<T extends string>(value: unknown, choices: readonly T[]): T | undefined {
  return choices.find((choice) => choice === value)
}

/** A day (`2026-01-31`) that exists. */
export function dayOf(value: unknown): string | undefined {
  const text = textOf(value)
  const isDay = text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
  return isDay ? text : undefined
}

/** Without what is absent, so that the address stays short. */
export function present<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T
}
