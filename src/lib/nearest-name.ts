/** Finds what somebody meant to write. */

/** The candidate fewest edits away from `name`; of equals the first. */
export function nearestName(name: string, candidates: readonly string[]): string | undefined {
  let nearest: string | undefined
  let fewest = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    const edits = editDistance(name, candidate)
    if (edits < fewest) [nearest, fewest] = [candidate, edits]
  }
  return nearest
}

/** How many letters must be put in, taken out or replaced to turn one text into the other (Levenshtein). */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1]
    for (let column = 0; column < to.length; column++) {
      const replaced = (previous[column] ?? 0) + (to[column] === letter ? 0 : 1)
      current.push(Math.min(replaced, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1))
    }
    previous = current
  }
  return previous[to.length] ?? 0
}
