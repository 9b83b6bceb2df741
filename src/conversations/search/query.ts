/** Parses searches such as `refund "late arrival" -hotel book*`, and cuts snippets out of matching texts. */
import { ServiceError } from '../../lib/errors.ts'
import { placeWords, toWords } from './words.ts'

const MAX_TERMS = 16
const SNIPPET_LENGTH = 160
/** Number of characters that a snippet shows before the first match. */
const SNIPPET_BEFORE = 40

/** Consecutive words that an item must contain or, with `isExcluded`, must not contain. */
export interface SearchTerm {
  readonly words: readonly string[]
  /** Whether the last word also matches longer words that start with it. */
  readonly isPrefix: boolean
  readonly isExcluded: boolean
}

const term = /(-?)(?:"([^"]*)"?(\*?)|([^\s"]+))/g

/** @throws ServiceError `invalid_value` for more than 16 terms, or if all terms are excluded */
export function parseSearch(text: string): readonly SearchTerm[] {
  const terms: SearchTerm[] = []
  for (const [, minus, phrase, star, bare = ''] of text.matchAll(term)) {
    const isPrefix = phrase === undefined ? bare.endsWith('*') : star === '*'
    const words = toWords(phrase ?? bare)
    if (words.length > 0) terms.push({ words, isPrefix, isExcluded: minus === '-' })
  }
  if (terms.length > MAX_TERMS)
    throw new ServiceError('invalid_value', `q: must have at most ${MAX_TERMS} terms (got ${terms.length})`, {
      param: 'q',
    })
  if (terms.every(({ isExcluded }) => isExcluded))
    throw new ServiceError('invalid_value', 'q: must contain a word to search for', { param: 'q' })
  return terms
}

/** Returns the part of a text around the first word that a term matches, on one line. */
export function toSnippet(text: string, terms: readonly SearchTerm[]): string {
  const at = findFirst(text, terms)
  const from = at <= SNIPPET_BEFORE ? 0 : startOfWord(text, at - SNIPPET_BEFORE, at)
  const part = text.slice(from, from + SNIPPET_LENGTH)
  const isCut = from + SNIPPET_LENGTH < text.length
  const line = part
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return `${from > 0 ? '…' : ''}${line}${isCut ? '…' : ''}`
}

/** Returns the offset of the first match; 0 without one. */
function findFirst(text: string, terms: readonly SearchTerm[]): number {
  const placed = placeWords(text)
  const wanted = terms.filter(({ isExcluded }) => !isExcluded)
  const first = placed.find((_, index) => wanted.some((one) => matchesAt(placed, index, one)))
  return first?.from ?? 0
}

function matchesAt(
  placed: readonly { readonly word: string }[],
  index: number,
  { words, isPrefix }: SearchTerm,
): boolean {
  return words.every((word, offset) => {
    const found = placed[index + offset]?.word
    return isPrefix && offset === words.length - 1 ? found?.startsWith(word) : found === word
  })
}

/**
 * Returns the start of the first whole word between `from` and `latest`; `from` if there is no space between
 * them.
 */
function startOfWord(text: string, from: number, latest: number): number {
  const space = text.slice(from, latest).search(/\s/)
  const start = space === -1 ? from : from + space + 1
  // A character outside the basic plane consists of two units.
  return /[\uDC00-\uDFFF]/.test(text[start] ?? '') ? start + 1 : start
}
