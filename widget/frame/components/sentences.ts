/** Finds the sentences of a text that is still growing. */

/** The end of a sentence, with what closes it; between words of languages that have spaces, a space must follow. */
const sentenceEnd = /[.!?…؟][\])"'”’»*_]*(?=\s)|[。！？]|\n/g
/** A text without sentences is told in parts of about this length. */
const LONG = 600

interface Sentences {
  /** As they are said: without the marks of Markdown. */
  readonly sentences: string
  /** Where what has not been taken begins. */
  readonly end: number
}

/** The sentences that are complete from `start` on; all the rest of a text that `isComplete`. */
export function takeSentences(text: string, start: number, isComplete: boolean): Sentences {
  const rest = text.slice(start)
  let end = isComplete ? rest.length : 0
  if (!isComplete) {
    for (const match of rest.matchAll(sentenceEnd)) end = match.index + match[0].length
    if (end === 0 && rest.length > LONG) end = rest.lastIndexOf(' ', LONG)
    if (end <= 0) end = rest.length > LONG ? LONG : 0
  }
  return { sentences: sayable(rest.slice(0, end)), end: start + end }
}

function sayable(text: string): string {
  return text
    .replaceAll(/^[ \t]*(?:```|~~~).*$/gm, '')
    .replaceAll(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, '$1')
    .replaceAll(/^[ \t]{0,3}(?:#{1,6}|>|[-+*])[ \t]+/gm, '')
    .replaceAll(/[*_`~|]+/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
