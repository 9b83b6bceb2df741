/** The rendered form of an agent: its configuration as front matter between two lines `---`, then its instructions. */
import { isScalar, type Pair, type ParsedNode } from 'yaml'
import { reject, type YamlMapping } from '../lib/formats/yaml.ts'

/** A Markdown text taken apart; offsets into the one are offsets into the other. */
export interface FrontMatter {
  /** From the start of the text to the closing line: the opening line is YAML's own document marker. */
  readonly configuration: string
  readonly instructions: string
  readonly instructionsStart: number
}

/**
 * Takes front matter and instructions apart; the instructions are every unit after the closing line and its empty line.
 * Decision: 6.
 * @throws ServiceError `invalid_value`, naming line and column.
 */
export function splitFrontMatter(text: string): FrontMatter {
  const opening = /^---\r?\n/.exec(text)
  if (opening === null)
    reject(text, 0, [], 'must start with front matter: a line ---, the configuration, a line ---')
  // The line end before the closing line may be the one of the opening line.
  const search = /\n---(\r?\n|$)/g
  search.lastIndex = opening[0].length - 1
  const closing = search.exec(text)
  if (closing === null) reject(text, text.length, [], 'the front matter must be closed by a line ---')
  const emptyLine = /^\r?\n/.exec(text.slice(search.lastIndex, search.lastIndex + 2))
  if (emptyLine === null) {
    reject(
      text,
      search.lastIndex,
      [],
      'the line --- that closes the front matter must be followed by an empty line',
    )
  }
  const instructionsStart = search.lastIndex + emptyLine[0].length
  return {
    configuration: text.slice(0, closing.index + 1),
    instructions: text.slice(instructionsStart),
    instructionsStart,
  }
}

/** Puts a configuration of whole lines and instructions together so that `splitFrontMatter` gives both back. */
export function joinFrontMatter(configuration: string, instructions: string): string {
  return `---\n${configuration}---\n\n${instructions}`
}

/** The lines of a mapping without one of its entries; the other entries stay as they were written. */
export function cutEntry(mapping: YamlMapping, key: string): string {
  const { text, root, bodyStart, bodyEnd } = mapping
  const index = root.items.findIndex((entry) => isScalar(entry.key) && entry.key.value === key)
  const [before, entry, after] = [root.items[index - 1], root.items[index], root.items[index + 1]]
  if (entry === undefined) return text.slice(bodyStart, bodyEnd)
  const cut = root.flow ? flowCut(entry, before, after) : blockCut(mapping, entry, after)
  return text.slice(bodyStart, cut.start) + cut.kept + text.slice(cut.end, bodyEnd)
}

type Entry = Pair<ParsedNode, ParsedNode | null>

/** What to leave out of a text, and what to put there instead. */
interface Cut {
  readonly start: number
  readonly end: number
  readonly kept: string
}

/** An entry in braces goes with the comma before it or, if it is the first, up to the next one. */
function flowCut(entry: Entry, before: Entry | undefined, after: Entry | undefined): Cut {
  const end = valueEndOf(entry)
  if (before !== undefined) return { start: valueEndOf(before), end, kept: '' }
  return { start: entry.key.range[0], end: after?.key.range[0] ?? end, kept: '' }
}

function valueEndOf({ key, value }: Entry): number {
  return (value ?? key).range[1]
}

/**
 * An entry of its own lines goes up to the next one. Of what stands between them only comments that are not indented are
 * kept: the rest could become part of a block scalar before the cut.
 */
function blockCut({ text, bodyStart, bodyEnd }: YamlMapping, entry: Entry, after: Entry | undefined): Cut {
  const start = Math.max(lineStartOf(text, entry), bodyStart)
  const end = after === undefined ? bodyEnd : lineStartOf(text, after)
  const valueEnd = (entry.value ?? entry.key).range[2]
  const indent = keyStartOf(entry) - start
  const comments = text.slice(valueEnd, end).match(new RegExp(`(?<![^\\n]) {0,${indent}}#[^\\n]*\\n`, 'g'))
  return { start, end, kept: comments?.join('') ?? '' }
}

function lineStartOf(text: string, entry: Entry): number {
  return text.lastIndexOf('\n', keyStartOf(entry) - 1) + 1
}

/** Where the key starts, or the `?` before it. */
function keyStartOf({ key, srcToken }: Entry): number {
  return srcToken?.start.find((token) => token.type === 'explicit-key-ind')?.offset ?? key.range[0]
}
