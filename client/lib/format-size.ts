/** Sizes in words, in the browser's language. */

const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const

/** Bytes as people say them: 1.4 MB. */
export function renderSize(sizeBytes: number): string {
  const power = sizeBytes < 1 ? 0 : Math.min(Math.floor(Math.log10(sizeBytes) / 3), units.length - 1)
  const unitDisplay = power === 0 ? 'long' : 'short'
  const digits = power === 0 ? 0 : 1
  const format = new Intl.NumberFormat(undefined, {
    style: 'unit',
    unit: units[power] ?? 'byte',
    unitDisplay,
    maximumFractionDigits: digits,
  })
  return format.format(sizeBytes / 1_000 ** power)
}

/** 0 to 1 as whole percent, rounded down: 100 % is said of what is whole alone. */
export function renderShare(share: number): string {
  return `${Math.floor(share * 100)} %`
}
