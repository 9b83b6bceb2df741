/** Cuts text into the pieces that the mock provider streams and counts. */

const vocabulary = 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor'.split(' ')

/** Cuts text into words, each with the white space before it; joined they are the text again. */
export function splitWords(text: string): readonly string[] {
  return text.match(/\s*\S+|\s+$/g) ?? []
}

/** Cuts JSON text after its punctuation, which streams compact JSON in more than one piece; joined it is the text again. */
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
