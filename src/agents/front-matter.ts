/** The Markdown form of an agent definition: the configuration as front matter between two `---` lines, then the instructions. */
import { isScalar, type Pair, type ParsedNode } from 'yaml'
import { refuse, type YamlMapping } from '../lib/formats/yaml.ts'

export interface FrontMatter {
  /** From the start of the text to the closing line, so that offsets are the same; YAML reads the opening line as a document marker. */
  readonly configuration: string
  readonly instructions: string
  readonly instructionsStart: number
}

/**
 * Splits front matter and instructions, which start after the closing line and an empty line.
 * @throws ServiceError `invalid_value`, naming line and column.
 */
export function splitFrontMatter(text: string): FrontMatter {
  const opening = /^---\r?\n/.exec(text)
  if (opening === null)
    refuse(text, 0, [], 'must start with front matter: a line ---, the configuration, a line ---')
  // The opening line may be directly followed by the closing line.
  const search = /\n---(\r?\n|$)/g
  search.lastIndex = opening[0].length - 1
  const closing = search.exec(text)
  if (closing === null) refuse(text, text.length, [], 'the front matter must be closed by a line ---')
  const emptyLine = /^\r?\n/.exec(text.slice(search.lastIndex, search.lastIndex + 2))
  if (emptyLine === null) {
    refuse(
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

/** The reverse of `splitFrontMatter`, for a configuration of complete lines. */
export function joinFrontMatter(configuration: string, instructions: string): string {
  return `---\n${configuration}---\n\n${instructions}`
}

/** The text of a mapping without one entry; the other entries are not changed. */
export function cutEntry(mapping: YamlMapping, key: string): string {
  const { text, root, bodyStart, bodyEnd } = mapping
  const index = root.items.findIndex((entry) => isScalar(entry.key) && entry.key.value === key)
  const [before, entry, after] = [root.items[index - 1], root.items[index], root.items[index + 1]]
  if (entry === undefined) return text.slice(bodyStart, bodyEnd)
  const cut = root.flow ? flowCut(entry, before, after) : blockCut(mapping, entry, after)
  return text.slice(bodyStart, cut.start) + cut.kept + text.slice(cut.end, bodyEnd)
}

type Entry = Pair<ParsedNode, ParsedNode | null>

interface Cut {
  readonly start: number
  readonly end: number
  /** What replaces the text from `start` to `end`. */
  readonly kept: string
}

/** Removes an entry in braces with the comma before it, or the first entry up to the next one. */
function flowCut(entry: Entry, before: Entry | undefined, after: Entry | undefined): Cut {
  const end = valueEndOf(entry)
  if (before !== undefined) return { start: valueEndOf(before), end, kept: '' }
  return { start: entry.key.range[0], end: after?.key.range[0] ?? end, kept: '' }
}

function valueEndOf({ key, value }: Entry): number {
  return (value ?? key).range[1]
}

/**
 * Removes an entry in block style up to the next one. Keeps only comments that are not indented: other lines could become part of a
 * block scalar before the cut.
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

/** The start of the key, or of the `?` before it. */
function keyStartOf({ key, srcToken }: Entry): number {
  return srcToken?.start.find((token) => token.type === 'explicit-key-ind')?.offset ?? key.range[0]
}
