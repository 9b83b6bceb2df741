/** Cuts Markdown where one block ends and the next begins, so that of a growing text only the end is parsed again. */

interface Fence {
  readonly mark: string
  /** It belongs to an item of a list, and ends with it at the latest. */
  readonly isInList: boolean
}

const lineEnd = /\r\n|\n|\r/g
const listItem = /^ {0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)/
const fenceLine = /^( {0,3})(`{3,}(?!.*`)|~{3,})/

/**
 * The blocks of a text; joined they are the text again. It is cut at blank lines alone, and where in doubt not at all: in a fence, before
 * a line that may go on with a list or with indented code. Protocol: CommonMark 0.31, 3.
 */
export function splitBlocks(text: string): readonly string[] {
  const blocks: string[] = []
  let start = 0
  let isAfterBlank = false
  let isList = false
  let hasBegun = false
  let fence: Fence | undefined
  for (const { from, line } of listLines(text)) {
    if (isBlank(line)) {
      isAfterBlank = hasBegun
      continue
    }
    if (fence?.isInList && isFlush(line)) fence = undefined
    if (fence === undefined && isAfterBlank && isFlush(line) && !(isList && listItem.test(line))) {
      blocks.push(text.slice(start, from))
      start = from
      hasBegun = false
    }
    if (!hasBegun) isList = listItem.test(line)
    // A list can also follow a paragraph without a blank line between them.
    else if (listItem.test(line)) isList = true
    fence = nextFence(fence, line, isList)
    hasBegun = true
    isAfterBlank = false
  }
  if (start < text.length) blocks.push(text.slice(start))
  return blocks
}

/** Whether the end of the text is inside a fence that was opened at the left edge. */
export function isInFence(block: string): boolean {
  let fence: Fence | undefined
  for (const { line } of listLines(block)) {
    if (!isBlank(line)) fence = nextFence(fence, line, false)
  }
  return fence !== undefined
}

function nextFence(fence: Fence | undefined, line: string, isList: boolean): Fence | undefined {
  const [all, indent, mark] = fenceLine.exec(line) ?? []
  if (all === undefined || mark === undefined) return fence
  if (fence === undefined) return { mark, isInList: isList && (indent?.length ?? 0) >= 2 }
  const isEnd =
    mark[0] === fence.mark[0] && mark.length >= fence.mark.length && isBlank(line.slice(all.length))
  return isEnd ? undefined : fence
}

function* listLines(text: string): Generator<{ from: number; line: string }> {
  let from = 0
  for (const { index, 0: end } of text.matchAll(lineEnd)) {
    yield { from, line: text.slice(from, index) }
    from = index + end.length
  }
  if (from < text.length) yield { from, line: text.slice(from) }
}

function isBlank(line: string): boolean {
  return /^[ \t]*$/.test(line)
}

/** At the left edge: nothing an item of a list or indented code could go on with. */
function isFlush(line: string): boolean {
  return /^ ?[^ \t]/.test(line)
}
