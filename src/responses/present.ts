/** Leaves out what a request does not say. */

/** The fields that have a value; null counts as none, as in every optional field of the API. */
export function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  )
}
