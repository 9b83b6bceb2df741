/** Computes the axes and the labels of charts. */

/** Number of intervals that an axis should have. */
const INTERVALS = 4

/**
 * Returns the values of an axis from 0 to at least `max`, in steps of 1, 2 or 5 times a power of ten. If
 * `isWhole`, all values are whole numbers.
 */
export function listTicks(max: number, isWhole: boolean): number[] {
  const least = max > 0 ? max / INTERVALS : 1
  const power = 10 ** Math.floor(Math.log10(least))
  const exact = ([1, 2, 5].find((factor) => factor * power >= least) ?? 10) * power
  const step = isWhole ? Math.max(exact, 1) : exact
  const count = Math.max(Math.ceil(max / step), 1)
  return Array.from({ length: count + 1 }, (_, index) => index * step)
}

/**
 * Returns the indexes of the points to label so that labels do not overlap; always includes the last point.
 */
export function listLabelled(count: number, widthPixels: number, labelPixels: number): number[] {
  const every = Math.max(Math.ceil((labelPixels * count) / Math.max(widthPixels, 1)), 1)
  return Array.from({ length: count }, (_, index) => index).filter(
    (index) => (count - 1 - index) % every === 0,
  )
}

/** Maximum number of characters in one line of a label. */
const LABEL_LETTERS = 24
const LABEL_LINES = 2

/** Breaks a name into lines, between words where possible; shortens only what exceeds the last line. */
export function breakLabel(name: string): string[] {
  const lines: string[] = []
  let rest = [...name]
  while (rest.length > LABEL_LETTERS && lines.length < LABEL_LINES - 1) {
    const space = rest.lastIndexOf(' ', LABEL_LETTERS)
    const end = space > 0 ? space : LABEL_LETTERS
    lines.push(rest.slice(0, end).join(''))
    rest = rest.slice(space > 0 ? end + 1 : end)
  }
  const isLong = rest.length > LABEL_LETTERS
  return [...lines, isLong ? `${rest.slice(0, LABEL_LETTERS - 1).join('')}…` : rest.join('')]
}
