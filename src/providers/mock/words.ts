/** Splits text into the pieces that the mock provider streams and counts. */

const vocabulary = 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor'.split(' ')

/** Splits text into words with their preceding white space; joining the pieces restores the text. */
export function splitWords(text: string): readonly string[] {
  return text.match(/\s*\S+|\s+$/g) ?? []
}

/**
 * Splits JSON after punctuation, so that compact JSON also streams in several pieces; joining them restores
 * the text.
 */
export function splitJson(text: string): readonly string[] {
  return text.match(/[^\s,:{[]+[\s,:{[]*|[\s,:{[]+/g) ?? []
}

export function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0
}

export function wordAt(place: number): string {
  return vocabulary[place % vocabulary.length] ?? ''
}

export function makeWords(count: number): string {
  return Array.from({ length: count }, (_, place) => wordAt(place)).join(' ')
}
