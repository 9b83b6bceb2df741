/** Finds complete sentences in a text that is still growing. */

/** Matches the end of a sentence and its closing marks; a space must follow, except after CJK punctuation. */
const sentenceEnd = /[.!?…؟][\])"'”’»*_]*(?=\s)|[。！？]|\n/g
/** Length in characters of the parts that are announced if a text has no sentence ends. */
const LONG = 600

interface Sentences {
  /** The sentences without Markdown markup, so that they can be read aloud. */
  readonly sentences: string
  /** Index of the first character after the returned text. */
  readonly end: number
}

/** Returns the complete sentences after `start`, or all remaining text if `isComplete`. */
export function takeSentences(text: string, start: number, isComplete: boolean): Sentences {
  const rest = text.slice(start)
  let end = isComplete ? rest.length : 0
  if (!isComplete) {
    for (const match of rest.matchAll(sentenceEnd)) end = match.index + match[0].length
    if (end === 0 && rest.length > LONG) end = rest.lastIndexOf(' ', LONG)
    if (end <= 0) end = rest.length > LONG ? LONG : 0
  }
  return { sentences: toSpoken(rest.slice(0, end)), end: start + end }
}

/** Returns the text without Markdown markup, for reading aloud. */
export function toSpoken(text: string): string {
  return text
    .replaceAll(/^[ \t]*(?:```|~~~).*$/gm, '')
    .replaceAll(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, '$1')
    .replaceAll(/^[ \t]{0,3}(?:#{1,6}|>|[-+*])[ \t]+/gm, '')
    .replaceAll(/[*_`~|]+/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
