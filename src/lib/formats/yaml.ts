/** Reads a safe subset of YAML, and finds each value's position in the text. */
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

export interface YamlMapping {
  /** The source, always with a trailing line break. */
  readonly text: string
  readonly root: YAMLMap.Parsed
  readonly value: Readonly<Record<string, unknown>>
  /** Offsets of the mapping and its comments, without directives and document markers. */
  readonly bodyStart: number
  readonly bodyEnd: number
}

/**
 * Reads one mapping with at most 16 levels and without anchors, aliases, tags or repeated keys. If `isSecret`
 * is true, errors do not quote the text.
 */
export function readYaml(source: string, isSecret = false): YamlMapping {
  const text = source.endsWith('\n') ? source : `${source}\n`
  const tokens = readTokens(text, isSecret)
  const document = composeDocument(text, tokens, isSecret)
  const root = document.contents
  if (!isMap(root)) reject(text, root?.range[0] ?? 0, [], 'must be one YAML mapping of keys to values')
  inspect(text, root, [], 1)
  return { text, root, value: document.toJS({ maxAliasCount: 0 }), ...bodyRange(text, tokens) }
}

/** Returns the offset of the value at `path`, or of its innermost existing ancestor. */
export function offsetOf(mapping: YamlMapping, path: Path): number {
  let node: ParsedNode = mapping.root
  for (const segment of path) {
    const child: unknown = isMap(node) || isSeq(node) ? node.get(segment, true) : undefined
    if (!isParsed(child)) break
    node = child
  }
  return node.range[0]
}

/** Returns the offset of the key at `path`, or of its innermost existing ancestor. */
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

/** Only parsed nodes have a range. */
function isParsed(value: unknown): value is ParsedNode {
  return isNode(value) && Array.isArray(value.range)
}

/**
 * Skips the library's check for duplicate keys, which takes quadratic time; `inspect` checks them instead.
 */
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
  if (document === undefined) reject(text, 0, [], 'must be one YAML document')
  const fault = document.errors[0] ?? document.warnings[0]
  if (fault !== undefined) {
    const problem = fault.code === 'NON_STRING_KEY' ? 'a key must be plain text' : fault.message
    reject(text, fault.pos[0], [], toProblem(problem, isSecret))
  }
  return document
}

/**
 * Disables stack traces, because the library creates an Error for each fault, and 250,000 stack traces take
 * six seconds.
 */
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
  if (depth > deepestNesting) reject(text, node.range[0], path, tooDeep)
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
    if (key.range[0] === key.range[1]) reject(text, offset, path, 'must have a key before each colon')
    inspectScalar(text, offset, namePath, name)
    if (name === '__proto__') reject(text, offset, namePath, 'is not allowed as a key')
    if (seen.has(name)) reject(text, offset, namePath, 'occurs more than once')
    seen.add(name)
    inspect(text, value, namePath, depth + 1)
  }
}

function inspectScalar(text: string, offset: number, path: Path, value: unknown): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    reject(text, offset, path, 'must be a finite number')
  }
  if (typeof value !== 'string') return
  if (!value.isWellFormed()) reject(text, offset, path, 'must be well-formed Unicode')
  if (value.includes('\0')) reject(text, offset, path, 'must not contain the character U+0000')
}

function bodyRange(text: string, tokens: readonly CST.Token[]): Pick<YamlMapping, 'bodyStart' | 'bodyEnd'> {
  const bodyEnd = tokens.find((token) => token.type === 'doc-end')?.offset ?? text.length
  const documentToken = tokens.find((token) => token.type === 'document')
  const marker = documentToken?.start.find((token) => token.type === 'doc-start')
  if (marker === undefined) return { bodyStart: 0, bodyEnd }
  const markerEnd = marker.offset + marker.source.length
  const lineRest = /^[ \t]*\r?\n/.exec(text.slice(markerEnd))?.[0] ?? ''
  return { bodyStart: markerEnd + lineRest.length, bodyEnd }
}

const deepestNesting = 16

const tooDeep = `must not be nested deeper than ${deepestNesting} levels`

/**
 * Maximum number of tokens; 256 KiB of hand-written YAML has fewer. Limits the time for a text full of
 * brackets, which takes 2 µs per token.
 */
const mostLexemes = 100_000

/**
 * Stops at the first forbidden token, because building the document first could overflow the stack or take
 * seconds.
 */
function readTokens(text: string, isSecret: boolean): CST.Token[] {
  const parser = new Parser()
  const tokens: CST.Token[] = []
  let lexemes = 0
  let isContent = false
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1
    if (lexemes > mostLexemes) reject(text, parser.offset, [], `must have at most ${mostLexemes} YAML tokens`)
    const forbidden = isContent ? undefined : forbiddenMarks.get(lexeme.charAt(0))
    if (forbidden !== undefined) {
      const problem = `YAML ${forbidden} are not allowed; quote text that starts with ${lexeme.charAt(0)}`
      reject(text, parser.offset, pathOf(parser.stack), problem)
    }
    isContent = lexeme === CST.SCALAR
    for (const token of parser.next(lexeme)) takeToken(text, tokens, token, isSecret)
    if (parser.stack.length > deepestNesting + 2) {
      reject(text, parser.offset, pathOf(parser.stack), tooDeep)
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

/** Hides the library's message for secret texts, because it quotes them. */
function toProblem(found: string, isSecret: boolean): string {
  return isSecret ? 'invalid YAML' : `invalid YAML: ${found}`
}

function takeToken(text: string, tokens: CST.Token[], token: CST.Token, isSecret: boolean): void {
  if (token.type === 'error') reject(text, token.offset, [], toProblem(token.message, isSecret))
  if (token.type === 'byte-order-mark') {
    reject(text, token.offset, [], 'must not contain a byte order mark')
  }
  const isSecond = token.type === 'document' && tokens.some((earlier) => earlier.type === 'document')
  if (isSecond) reject(text, token.offset, [], 'must be one YAML document, not several')
  tokens.push(token)
}

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

/** Throws an error for a fault at an offset in UTF-16 units. @throws ServiceError */
export function reject(text: string, offset: number, path: Path, problem: string): never {
  const param = renderPath(path)
  const message = renderFault(text, offset, path, problem)
  const position = positionAt(text, offset)
  throw new ServiceError('invalid_value', message, param === '' ? { position } : { param, position })
}

/** Renders a fault such as `tools[0].name: must be a string (line 3, column 9)`. */
export function renderFault(text: string, offset: number, path: Path, problem: string): string {
  const { line, column } = positionAt(text, offset)
  const place = renderPath(path)
  const sentence = shorten(problem.replaceAll(lineBreaks, ' '), longestProblem)
  const subject =
    place === '' ? sentence.charAt(0).toUpperCase() + sentence.slice(1) : `${place}: ${sentence}`
  return `${subject} (line ${line}, column ${column})`
}

/** Returns the line and column, both from 1; columns count UTF-16 units, as editors do. */
function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}
