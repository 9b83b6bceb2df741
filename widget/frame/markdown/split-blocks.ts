/** Splits Markdown into blocks, so that only the end of a growing text is parsed again. */

interface Fence {
  readonly mark: string
  /** True if the fence is inside a list item. The end of the item also closes the fence. */
  readonly isInList: boolean
}

/** State of the lines since the last block boundary. */
interface Place {
  fence: Fence | undefined
  /** Column at which the newest list item's content starts; 0 outside of lists. */
  itemColumn: number
  /** True if a list may be open, so that an indented fence may belong to it. */
  isDoubtful: boolean
}

const lineEnd = /\r\n|\n|\r/g
const listItem = /^( {0,3}(?:[-+*]|\d{1,9}[.)]))( +(?=\S)|[ ]*$)/
const thematicBreak = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/
/** Matches list items with a number other than 1, which micromark treats as text after indented code. */
const laterItem = /^ {0,3}(?!1[.)])\d{1,9}[.)]/
const fenceLine = /^( {0,3})(`{3,}(?!.*`)|~{3,})/

/**
 * Splits a text into blocks; joining them restores the text. Splits only at blank lines, and never where the
 * next line may continue a fence, a list or indented code (CommonMark 0.31, section 3).
 */
export function splitBlocks(text: string): readonly string[] {
  const blocks: string[] = []
  let start = 0
  let isAfterBlank = false
  let hasBegun = false
  let isAfterCode = false
  let place: Place = newPlace()
  for (const { from, line } of listLines(text)) {
    if (isBlank(line)) {
      isAfterBlank = hasBegun
      continue
    }
    if (place.fence?.isInList && indentOf(line) < place.itemColumn) place.fence = undefined
    const isItem = place.itemColumn > 0 ? listItem.test(line) : isAfterCode && laterItem.test(line)
    if (place.fence === undefined && isAfterBlank && indentOf(line) <= 1 && !isItem) {
      blocks.push(text.slice(start, from))
      start = from
      hasBegun = false
      place = newPlace()
    }
    advance(place, line, hasBegun && !isAfterBlank)
    if (place.isDoubtful && place.fence?.isInList) break
    hasBegun = true
    isAfterBlank = false
    isAfterCode = indentOf(line) >= 4
  }
  if (start < text.length) blocks.push(text.slice(start))
  return blocks
}

/** Returns whether the text ends inside an open fence that is not in a list. */
function isInFence(block: string): boolean {
  const place = newPlace()
  for (const { line } of listLines(block)) {
    if (!isBlank(line)) place.fence = nextFence(place, line)
  }
  return place.fence !== undefined
}

function newPlace(): Place {
  return { fence: undefined, itemColumn: 0, isDoubtful: false }
}

function advance(place: Place, line: string, isRightAfterLine: boolean): void {
  if (place.fence === undefined && indentOf(line) < (place.itemColumn || 4)) {
    const column = columnOfItem(line)
    // An item directly after text may not start a list, and text directly after an item may belong to it.
    if (isRightAfterLine && (column === 0) !== (place.itemColumn === 0)) place.isDoubtful = true
    if (column > 0) place.itemColumn = column
  }
  place.fence = nextFence(place, line)
}

/** Returns the column at which a list item's content starts, or 0 if the line is not a list item. */
function columnOfItem(line: string): number {
  const [, marker, space] = listItem.exec(line) ?? []
  if (marker === undefined || space === undefined || thematicBreak.test(line)) return 0
  const isEmptyOrCode = space.length > 4 || isBlank(line.slice(marker.length))
  return marker.length + (isEmptyOrCode ? 1 : space.length)
}

function nextFence({ fence, itemColumn }: Place, line: string): Fence | undefined {
  const [all, indent = '', mark] = fenceLine.exec(line) ?? []
  if (all === undefined || mark === undefined) return fence
  if (fence === undefined)
    return { mark, isInList: itemColumn > 0 && indent.length >= 2 && indent.length >= itemColumn }
  const isEnd =
    mark[0] === fence.mark[0] && mark.length >= fence.mark.length && isBlank(line.slice(all.length))
  return isEnd ? undefined : fence
}

/** Yields the lines with tabs expanded to spaces. */
function* listLines(text: string): Generator<{ from: number; line: string }> {
  let from = 0
  for (const { index, 0: end } of text.matchAll(lineEnd)) {
    yield { from, line: withoutTabs(text.slice(from, index)) }
    from = index + end.length
  }
  if (from < text.length) yield { from, line: withoutTabs(text.slice(from)) }
}

function withoutTabs(line: string): string {
  let at = line.indexOf('\t')
  if (at === -1) return line
  let spaced = line
  // Only tabs before the content matter.
  for (; at !== -1 && at < 16; at = spaced.indexOf('\t')) {
    spaced = spaced.slice(0, at) + ' '.repeat(4 - (at % 4)) + spaced.slice(at + 1)
  }
  return spaced
}

function isBlank(line: string): boolean {
  return /^[ \t]*$/.test(line)
}

function indentOf(line: string): number {
  return line.search(/[^ ]/)
}

const definition = /^ {0,3}\[(?!\^)[^\]\n]{1,200}\]:[ \t]*\S[^\n]{0,2000}$/gm
const MAX_DEFINITIONS = 50

/**
 * Appends the text's first link definitions to each block that may refer to a definition in another block.
 */
export function withDefinitions(blocks: readonly string[]): readonly string[] {
  const found = blocks.map((block) => block.match(definition) ?? [])
  const all = found.flat().slice(0, MAX_DEFINITIONS)
  if (all.length === 0) return blocks
  const appended = `\n\n${all.join('\n')}\n`
  const needsThem = (block: string, index: number) =>
    block.includes('[') && found[index]?.length === 0 && !isInFence(block)
  return blocks.map((block, index) => (needsThem(block, index) ? block + appended : block))
}
