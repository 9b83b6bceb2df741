/** Splits text into searchable words, in the same way for both databases (ADR 0069). */

/** Words beyond this number of characters in a text are not searchable. */
const MAX_TEXT = 200_000
/** Longer words are cut to this length, in the index and in searches. */
const MAX_WORD = 64

/**
 * Letters of scripts that write words without spaces. Each one is a word, and several in a row are found as a
 * phrase.
 */
const unspaced = String.raw`[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]&&[\p{L}\p{N}]]`
const oneUnspaced = new RegExp(`^${unspaced}$`, 'v')
const letter = /[\p{L}\p{N}]/u
const words = new RegExp(String.raw`${unspaced}|[[\p{L}\p{N}]--${unspaced}]+`, 'gv')

/** Returns the words of a text in order, in lower case and without combining marks. */
export function toWords(text: string): string[] {
  const found: string[] = []
  let length = 0
  for (const [word] of fold(text.slice(0, MAX_TEXT)).matchAll(words)) {
    const kept = shorten(word)
    length += kept.length + 1
    if (length > MAX_TEXT) break
    found.push(kept)
  }
  return found
}

export interface PlacedWord {
  readonly word: string
  /** Offsets in the text. */
  readonly from: number
  readonly to: number
}

/** Returns the same words as `toWords`, with their offsets in the text. */
export function placeWords(text: string): PlacedWord[] {
  const placed: PlacedWord[] = []
  let word = ''
  let from = 0
  let at = 0
  const end = (to: number) => {
    if (word !== '') placed.push({ word: shorten(word), from, to })
    word = ''
  }
  for (const character of text.slice(0, MAX_TEXT)) {
    const next = at + character.length
    for (const folded of fold(character)) {
      if (!letter.test(folded)) end(at)
      else if (oneUnspaced.test(folded)) {
        end(at)
        placed.push({ word: folded, from: at, to: next })
      } else {
        if (word === '') from = at
        word += folded
      }
    }
    at = next
  }
  end(at)
  return placed
}

function fold(text: string): string {
  // The lower case of Σ depends on its position in the word.
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replaceAll('ς', 'σ')
}

function shorten(word: string): string {
  return word.length <= MAX_WORD ? word : [...word].slice(0, MAX_WORD).join('')
}
