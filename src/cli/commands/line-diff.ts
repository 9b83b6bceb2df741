/** What changed between two texts, line by line. */

/** Comparing every line with every other one stops being instant somewhere beyond this. */
const MOST_COMPARISONS = 1_000_000

/** The lines that went, as `- line`, and those that came, as `+ line`, in the order of the texts. */
export function diffLines(before: string, after: string): string[] {
  const [old, next] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < old.length && start < next.length && old[start] === next[start]) start++
  let [oldEnd, nextEnd] = [old.length, next.length]
  while (oldEnd > start && nextEnd > start && old[oldEnd - 1] === next[nextEnd - 1]) {
    oldEnd--
    nextEnd--
  }
  return diffMiddle(old.slice(start, oldEnd), next.slice(start, nextEnd))
}

function diffMiddle(old: readonly string[], next: readonly string[]): string[] {
  if (old.length * next.length > MOST_COMPARISONS) return [...old.map(gone), ...next.map(come)]
  const width = next.length + 1
  const common = countCommon(old, next)
  const commonFrom = (i: number, j: number) => common[i * width + j] as number
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < next.length) {
    if (i < old.length && old[i] === next[j]) {
      i++
      j++
    } else if (j === next.length || (i < old.length && commonFrom(i + 1, j) >= commonFrom(i, j + 1))) {
      lines.push(gone(old[i++] as string))
    } else {
      lines.push(come(next[j++] as string))
    }
  }
  return lines
}

/** How many lines can be kept of what begins at line i of the one and line j of the other, for every i and j. */
function countCommon(old: readonly string[], next: readonly string[]): Uint32Array {
  const width = next.length + 1
  const counts = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = next.length - 1; j >= 0; j--) {
      const [below, right] = [counts[(i + 1) * width + j] as number, counts[i * width + j + 1] as number]
      counts[i * width + j] =
        old[i] === next[j] ? (counts[(i + 1) * width + j + 1] as number) + 1 : Math.max(below, right)
    }
  }
  return counts
}

const gone = (line: string) => `- ${line}`
const come = (line: string) => `+ ${line}`
