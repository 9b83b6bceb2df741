/**
 * Changes one value in a YAML text and preserves all other characters, including comments, quotes and blank
 * lines. Uses the parser's printer, which preserves only comments, for a change that text replacement cannot
 * make.
 */
import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Pair,
  parseDocument,
  Scalar,
  stringify,
  type ToStringOptions,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import { isSame, type Path, withValue } from './object-paths.ts'

/**
 * Returns the text with `value` at `path`; `undefined` removes it. `text` must be empty or a YAML mapping.
 */
export function editYaml(text: string, path: Path, value: unknown): string {
  const document = parseDocument(text, { keepSourceTokens: true })
  const wanted = withValue(document.toJS() ?? {}, path, value)
  const edited = cutAndPaste(text, document, path, value)
  const says = (candidate: string) => isSame(parseDocument(candidate).toJS() ?? {}, wanted)
  if (edited !== undefined && says(edited)) return edited
  const printed = print(text, path, value)
  // Uses quoted scalars, because yaml 2.9.1 does not indent some block scalars that start with spaces.
  return says(printed) ? printed : print(text, path, value, { blockQuote: false })
}

function print(text: string, path: Path, value: unknown, options: ToStringOptions = {}): string {
  const document = parseDocument(text)
  if (value === undefined) document.deleteIn(path)
  else document.setIn(path, document.createNode(value))
  return document.toString({ lineWidth: 0, ...options })
}

/** Replaces the value in the text; returns undefined if that is not possible. */
function cutAndPaste(text: string, document: Document, path: Path, value: unknown): string | undefined {
  if (document.contents === null)
    return `${endLine(text)}${renderPair(path[0], nest(path.slice(1), value))}\n`
  let node: unknown = document.contents
  for (const [depth, key] of path.entries()) {
    if (!isCollection(node) || node.flow === true) return undefined
    const rest = path.slice(depth + 1)
    const child = isMap(node) ? node.get(key, true) : (node as YAMLSeq).get(key, true)
    if (child === undefined) {
      return value === undefined ? text : insert(text, node as YAMLMap | YAMLSeq, key, nest(rest, value))
    }
    if (rest.length === 0) return change(text, node as YAMLMap | YAMLSeq, key, value)
    if (!isCollection(child) || child.flow === true) {
      const whole = isCollection(child) ? child.toJS(document) : undefined
      return change(text, node as YAMLMap | YAMLSeq, key, withValue(whole, rest, value))
    }
    node = child
  }
  return undefined
}

function change(
  text: string,
  parent: YAMLMap | YAMLSeq,
  key: string | number,
  value: unknown,
): string | undefined {
  if (isSeq(parent)) return changeItem(text, parent, key as number, value)
  const pair = parent.items.find((one) => isScalar(one.key) && one.key.value === key)
  const start = isScalar(pair?.key) ? pair.key.range?.[0] : undefined
  const end = endOf(pair?.value)
  if (pair === undefined || start === undefined || end === undefined) return undefined
  if (value === undefined) return cutLines(text, start, end)
  const rendered = renderPair(key, styledLike(pair, value))
  const short = shortValue(pair, String(key), rendered)
  if (short !== undefined) return text.slice(0, short.start) + short.text + text.slice(end)
  return paste(text, start, end, rendered)
}

/** Returns a one-line replacement for a one-line value, or undefined if either has several lines. */
function shortValue(pair: Pair, key: string, rendered: string): { start: number; text: string } | undefined {
  const [start = 0, end = 0] = (isScalar(pair.value) ? pair.value.range : undefined) ?? []
  const prefix = `${key}: `
  if (start === end || rendered.includes('\n') || !rendered.startsWith(prefix)) return undefined
  if (isScalar(pair.value) && /^BLOCK/.test(pair.value.type ?? '')) return undefined
  return { start, text: rendered.slice(prefix.length) }
}

function changeItem(text: string, seq: YAMLSeq, index: number, value: unknown): string | undefined {
  const dash = dashOf(seq, index)
  const item = seq.items[index] as { range?: [number, number, number] | null }
  const end = endOf(item)
  const start = item.range?.[0]
  if (dash === undefined || end === undefined || start === undefined) return undefined
  if (value === undefined) return cutLines(text, dash, end)
  return paste(text, start, end, renderItem(value))
}

function insert(
  text: string,
  parent: YAMLMap | YAMLSeq,
  key: string | number,
  value: unknown,
): string | undefined {
  const last = isMap(parent) ? parent.items.at(-1)?.value : parent.items.at(-1)
  const end = endOf(last)
  const first = isMap(parent) ? (parent.items[0]?.key as Scalar | undefined)?.range?.[0] : dashOf(parent, 0)
  if (end === undefined || first === undefined) return undefined
  const at = text[end - 1] === '\n' ? end : lineEnd(text, end)
  const indent = ' '.repeat(columnOf(text, first))
  const rendered = isMap(parent) ? renderPair(key, value) : `- ${renderItem(value).replaceAll('\n', '\n  ')}`
  return `${endLine(text.slice(0, at))}${indent}${indentRest(rendered, indent)}\n${text.slice(at)}`
}

/** Uses a block scalar for multi-line text, and preserves the quoting style of any other text. */
function styledLike({ value: old }: Pair, value: unknown): unknown {
  if (typeof value !== 'string') return value
  const scalar = new Scalar(value)
  if (value.includes('\n')) scalar.type = Scalar.BLOCK_LITERAL
  else if (isScalar(old) && old.type !== undefined) scalar.type = old.type
  return scalar
}

function nest(path: Path, value: unknown): unknown {
  return path.length === 0 ? value : withValue(undefined, path, value)
}

function renderPair(key: string | number | undefined, value: unknown): string {
  return stringify({ [String(key)]: styled(value) }, { lineWidth: 0 }).replace(/\n$/, '')
}

function styled(value: unknown): unknown {
  if (typeof value !== 'string' || !value.includes('\n')) return value
  const scalar = new Scalar(value)
  scalar.type = Scalar.BLOCK_LITERAL
  return scalar
}

function renderItem(value: unknown): string {
  return stringify(value, { lineWidth: 0 }).replace(/\n$/, '')
}

function paste(text: string, start: number, end: number, rendered: string): string {
  const indent = ' '.repeat(columnOf(text, start))
  // A block scalar's range includes its line break.
  const tail = text[end - 1] === '\n' ? '\n' : ''
  return text.slice(0, start) + indentRest(rendered, indent) + tail + text.slice(end)
}

/**
 * Removes the lines from `start` to `end`; returns undefined if other text comes before `start` on its line.
 */
function cutLines(text: string, start: number, end: number): string | undefined {
  const lineStart = start - columnOf(text, start)
  if (text.slice(lineStart, start).trim() !== '') return undefined
  return text.slice(0, lineStart) + text.slice(text[end - 1] === '\n' ? end : lineEnd(text, end))
}

/**
 * Returns a node's end. For a block collection, this is the end of its last value, so that comments below it
 * are preserved.
 */
function endOf(node: unknown): number | undefined {
  if (isCollection(node) && node.flow !== true && node.items.length > 0) {
    const last = node.items.at(-1)
    return endOf(isMap(node) ? (last as Pair).value : last)
  }
  return (node as { range?: [number, number, number] | null } | null | undefined)?.range?.[1]
}

function dashOf(seq: YAMLSeq, index: number): number | undefined {
  const { srcToken } = seq
  if (srcToken?.type !== 'block-seq') return undefined
  return srcToken.items[index]?.start.find(({ type }) => type === 'seq-item-ind')?.offset
}

function columnOf(text: string, offset: number): number {
  return offset - (text.lastIndexOf('\n', offset - 1) + 1)
}

function lineEnd(text: string, offset: number): number {
  const end = text.indexOf('\n', offset)
  return end === -1 ? text.length : end + 1
}

function endLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

function indentRest(text: string, indent: string): string {
  return text.replaceAll(/\n(?=[^\n])/g, `\n${indent}`)
}
