/** Reads YAML that people write, refuses what nobody needs, and knows where in the text every value stands. */
import {
  Composer,
  CST,
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  type ParsedNode,
  Parser,
  type YAMLMap,
} from 'yaml'
import { ServiceError } from '../errors.ts'
import { lineBreaks, type Path, renderPath, shorten } from './json.ts'

/** A text that is one mapping: its values, and what is needed to find or remove one of them in the text. */
export interface YamlMapping {
  /** As it was given, its last line finished. */
  readonly text: string
  readonly root: YAMLMap.Parsed
  readonly value: Readonly<Record<string, unknown>>
  /** Offsets around the mapping and its comments; directives and document markers lie outside. */
  readonly bodyStart: number
  readonly bodyEnd: number
}

/**
 * Reads a text that must be one YAML mapping, at most 16 levels deep, without anchors, aliases, tags or repeated keys.
 * An unfinished last line is read as if it were finished, so that the value does not hang on what follows. Security: 2.6.
 * The refusal of a secret text repeats none of its values.
 * @throws ServiceError `invalid_value`, naming path, line and column.
 */
export function readYaml(source: string, isSecret = false): YamlMapping {
  const text = source.endsWith('\n') ? source : `${source}\n`
  const tokens = readTokens(text, isSecret)
  const document = composeDocument(text, tokens, isSecret)
  const root = document.contents
  if (!isMap(root)) refuse(text, root?.range[0] ?? 0, [], 'must be one YAML mapping of keys to values')
  inspect(text, root, [], 1)
  return { text, root, value: document.toJS({ maxAliasCount: 0 }), ...bodyRange(text, tokens) }
}

/** The offset in the text of the value at `path`, or of the innermost value on the way to it when it is missing. */
export function offsetOf(mapping: YamlMapping, path: Path): number {
  let node: ParsedNode = mapping.root
  for (const segment of path) {
    const child: unknown = isMap(node) || isSeq(node) ? node.get(segment, true) : undefined
    if (!isParsed(child)) break
    node = child
  }
  return node.range[0]
}

/** The offset of the key at `path`, or of the innermost key on the way to it when it is missing. */
export function keyOffsetOf(mapping: YamlMapping, path: Path): number {
  let node: unknown = mapping.root
  let offset = mapping.root.range[0]
  for (const segment of path) {
    const entry = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && key.value === segment)
      : undefined
    if (entry === undefined || !isParsed(entry.key)) break
    offset = entry.key.range[0]
    node = entry.value
  }
  return offset
}

/** Every node that came out of a text has a range; nodes made by hand have none. */
function isParsed(value: unknown): value is ParsedNode {
  return isNode(value) && Array.isArray(value.range)
}

/** Builds the document of the tokens. Repeated keys are left to `inspect`: the library compares each with every other. */
function composeDocument(text: string, tokens: CST.Token[], isSecret: boolean): Document.Parsed {
  const composer = new Composer({
    schema: 'core',
    merge: false,
    customTags: [],
    strict: true,
    stringKeys: true,
    uniqueKeys: false,
    keepSourceTokens: true,
  })
  const [document] = withoutStackTraces(() => [...composer.compose(tokens, true, text.length)])
  if (document === undefined) refuse(text, 0, [], 'must be one YAML document')
  const fault = document.errors[0] ?? document.warnings[0]
  if (fault !== undefined) {
    const problem = fault.code === 'NON_STRING_KEY' ? 'a key must be plain text' : fault.message
    refuse(text, fault.pos[0], [], toProblem(problem, isSecret))
  }
  return document
}

/** The library makes an Error of every fault, and a quarter of a million stack traces take six seconds. */
function withoutStackTraces<Result>(work: () => Result): Result {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return work()
  } finally {
    Error.stackTraceLimit = limit
  }
}

function inspect(text: string, node: ParsedNode | null, path: Path, depth: number): void {
  if (isScalar(node)) inspectScalar(text, node.range[0], path, node.value)
  if (!isMap(node) && !isSeq(node)) return
  if (depth > deepestNesting) refuse(text, node.range[0], path, tooDeep)
  if (isMap(node)) inspectMap(text, node, path, depth)
  if (isSeq(node)) {
    node.items.forEach((item, index) => {
      if (isParsed(item)) inspect(text, item, [...path, index], depth + 1)
    })
  }
}

function inspectMap(text: string, map: YAMLMap.Parsed, path: Path, depth: number): void {
  const seen = new Set<string>()
  for (const { key, value } of map.items) {
    const name = isScalar(key) ? String(key.value) : ''
    const namePath = [...path, name]
    const offset = key.range[0]
    if (key.range[0] === key.range[1]) refuse(text, offset, path, 'must have a key before each colon')
    inspectScalar(text, offset, namePath, name)
    if (name === '__proto__') refuse(text, offset, namePath, 'is not allowed as a key')
    if (seen.has(name)) refuse(text, offset, namePath, 'is a repeated key')
    seen.add(name)
    inspect(text, value, namePath, depth + 1)
  }
}

function inspectScalar(text: string, offset: number, path: Path, value: unknown): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    refuse(text, offset, path, 'must be a finite number')
  }
  if (typeof value !== 'string') return
  if (!value.isWellFormed()) refuse(text, offset, path, 'must be well-formed Unicode')
  if (value.includes('\0')) refuse(text, offset, path, 'must not contain the character U+0000')
}

/** The part of the text that is the mapping and the comments around it. */
function bodyRange(text: string, tokens: readonly CST.Token[]): Pick<YamlMapping, 'bodyStart' | 'bodyEnd'> {
  const bodyEnd = tokens.find((token) => token.type === 'doc-end')?.offset ?? text.length
  const documentToken = tokens.find((token) => token.type === 'document')
  const marker = documentToken?.start.find((token) => token.type === 'doc-start')
  if (marker === undefined) return { bodyStart: 0, bodyEnd }
  const markerEnd = marker.offset + marker.source.length
  const lineRest = /^[ \t]*\r?\n/.exec(text.slice(markerEnd))?.[0] ?? ''
  return { bodyStart: markerEnd + lineRest.length, bodyEnd }
}

export const deepestNesting = 16

export const tooDeep = `must not be nested deeper than ${deepestNesting} levels`

/** What 256 KiB of hand-written YAML never reaches; a text of nothing but brackets or line ends would, at 2 µs each. */
const mostLexemes = 100_000

/**
 * Splits the text into its concrete tokens and gives up at the first forbidden thing: building the document first would
 * overflow the stack on deep nesting and take seconds on thousands of anchors.
 * @throws ServiceError `invalid_value`, naming path, line and column.
 */
export function readTokens(text: string, isSecret: boolean): CST.Token[] {
  const parser = new Parser()
  const tokens: CST.Token[] = []
  let lexemes = 0
  let isContent = false
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1
    if (lexemes > mostLexemes) refuse(text, parser.offset, [], `must have at most ${mostLexemes} YAML tokens`)
    const forbidden = isContent ? undefined : forbiddenMarks.get(lexeme.charAt(0))
    if (forbidden !== undefined) {
      const problem = `YAML ${forbidden} are not allowed; put a text that starts with ${lexeme.charAt(0)} in quotes`
      refuse(text, parser.offset, pathOf(parser.stack), problem)
    }
    isContent = lexeme === CST.SCALAR
    for (const token of parser.next(lexeme)) takeToken(text, tokens, token, isSecret)
    if (parser.stack.length > deepestNesting + 2) {
      refuse(text, parser.offset, pathOf(parser.stack), tooDeep)
    }
  }
  for (const token of parser.end()) takeToken(text, tokens, token, isSecret)
  return tokens
}

const forbiddenMarks: ReadonlyMap<string, string> = new Map([
  ['&', 'anchors'],
  ['*', 'aliases'],
  ['!', 'tags'],
])

/** What the library found wrong; of a secret text only that something is, because its sentences quote. */
export function toProblem(found: string, isSecret: boolean): string {
  return isSecret ? 'invalid YAML' : `invalid YAML: ${found}`
}

function takeToken(text: string, tokens: CST.Token[], token: CST.Token, isSecret: boolean): void {
  if (token.type === 'error') refuse(text, token.offset, [], toProblem(token.message, isSecret))
  if (token.type === 'byte-order-mark') {
    refuse(text, token.offset, [], 'must not have a byte order mark inside')
  }
  const isSecond = token.type === 'document' && tokens.some((earlier) => earlier.type === 'document')
  if (isSecond) refuse(text, token.offset, [], 'must be one YAML document, not several')
  tokens.push(token)
}

/** Where the parser stands: the keys and indexes of the collections that are open. */
function pathOf(stack: readonly CST.Token[]): Path {
  return stack.flatMap((token): Path => {
    if (!CST.isCollection(token)) return []
    if (token.type === 'block-seq') return [countOf(token.items, 'seq-item-ind') - 1]
    if (token.type === 'flow-collection' && token.start.source === '[') return [countOf(token.items, 'comma')]
    const item = token.items.at(-1)
    const isAtValue = item?.key && item.sep && !item.value
    return isAtValue ? [CST.resolveAsScalar(item.key, false, () => undefined)?.value ?? ''] : []
  })
}

function countOf(items: readonly CST.CollectionItem[], mark: CST.SourceToken['type']): number {
  return items.filter((item) => item.start.some((token) => token.type === mark)).length
}

const longestProblem = 200

/** Ends the reading of `text` with a fault that was found `offset` UTF-16 units into it. Decision: 6. @throws ServiceError */
export function refuse(text: string, offset: number, path: Path, problem: string): never {
  const param = renderPath(path)
  const message = renderFault(text, offset, path, problem)
  const position = positionAt(text, offset)
  throw new ServiceError('invalid_value', message, param === '' ? { position } : { param, position })
}

/** The sentence that names a fault: `tools[0].name: must be a string (line 3, column 9)`. */
export function renderFault(text: string, offset: number, path: Path, problem: string): string {
  const { line, column } = positionAt(text, offset)
  const place = renderPath(path)
  const sentence = shorten(problem.replaceAll(lineBreaks, ' '), longestProblem)
  const subject =
    place === '' ? sentence.charAt(0).toUpperCase() + sentence.slice(1) : `${place}: ${sentence}`
  return `${subject} (line ${line}, column ${column})`
}

/** Line and column of an offset, both from 1; the column in UTF-16 units, as editors count. */
function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}
