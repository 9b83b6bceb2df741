/** Finds the words of a search in a text, as the server's search compares them. */

interface Part {
  readonly text: string
  readonly isHit: boolean
}

/** Matches the terms of a search: `"a phrase"`, `-word`, `word*` and `word`. */
const term = /(-?)(?:"([^"]*)"?|(\S+))/g

/** Splits a text into hits and the text between them. */
export function splitHits(text: string, query: string): Part[] {
  const words = listWords(query)
  if (words.length === 0) return [{ text, isHit: false }]
  const { folded, starts } = fold(text)
  const parts: Part[] = []
  let at = 0
  while (at < text.length) {
    const hit = findNext(folded, starts.indexOf(at), words)
    const from = hit === undefined ? text.length : (starts[hit.from] ?? text.length)
    if (from > at) parts.push({ text: text.slice(at, from), isHit: false })
    if (hit === undefined) break
    at = endOf(starts, hit.to) ?? text.length
    parts.push({ text: text.slice(from, at), isHit: true })
  }
  return parts
}

function listWords(query: string): string[] {
  return [...query.matchAll(term)]
    .filter(([, minus]) => minus === '')
    .flatMap(([, , phrase, word = '']) => (phrase ?? word).split(/[^\p{L}\p{N}\p{M}]+/u))
    .map((word) => fold(word).folded)
    .filter((word) => word !== '')
}

function findNext(folded: string, start: number, words: readonly string[]) {
  const hits = words.flatMap((word) => {
    const from = folded.indexOf(word, start)
    return from === -1 ? [] : [{ from, to: from + word.length }]
  })
  return hits.toSorted((one, other) => one.from - other.from || other.to - one.to)[0]
}

/** Returns the position of a hit's end. One character can become several, such as the ligature of f and i. */
function endOf(starts: readonly number[], to: number): number | undefined {
  let end = to
  while (end < starts.length && starts[end] === starts[end - 1]) end += 1
  return starts[end]
}

/** Removes case and marks; `starts` maps each remaining code unit to its character's position in the text. */
function fold(text: string): { folded: string; starts: number[] } {
  const starts: number[] = []
  let folded = ''
  let at = 0
  for (const character of text) {
    const plain = character.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
    for (let unit = 0; unit < plain.length; unit++) starts.push(at)
    folded += plain
    at += character.length
  }
  return { folded, starts }
}
