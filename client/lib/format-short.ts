/** Numbers for axes, where there is little room. */

const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })

/** `12K`. */
export function renderCompact(value: number): string {
  return compact.format(value)
}

/** `350 ms`, `1.2 s`, without zeros nobody needs, on one line. */
export function renderShortTime(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)}\u00a0ms`
  return `${compact.format(milliseconds / 1_000)}\u00a0s`
}
