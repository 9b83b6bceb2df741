/** Limits the text of a block that is parsed as Markdown. */

/** Longer blocks are shown as plain text; in UTF-16 code units. */
const MAX_BLOCK_LENGTH = 20_000
/** Maximum number of delimiter characters in a block, because parsing them takes quadratic time. */
const MAX_MARKS = 2000
const marks = /[*_[>~]/g

/** Returns whether the text is within the limits for parsing. */
export function isParseable(text: string): boolean {
  return text.length <= MAX_BLOCK_LENGTH && (text.match(marks)?.length ?? 0) <= MAX_MARKS
}
