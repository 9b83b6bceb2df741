/** How a text is refused: one sentence that names the path, the line and the column at fault. */
import { ServiceError } from '../errors.ts'

/** The way from the root of a definition to one of its values: keys of mappings and indexes of lists. */
export type Path = readonly PropertyKey[]

const longestSegment = 64
const longestProblem = 200
const lineBreaks = /[\p{Cc}\p{Zl}\p{Zp}]+/gu

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

/** Writes a path as a person would: `tools[0].inputSchema["a key"]`. */
export function renderPath(path: Path): string {
  return path.map(renderSegment).join('').replace(/^\./, '')
}

function renderSegment(segment: PropertyKey): string {
  if (typeof segment === 'number') return `[${segment}]`
  const key = shorten(String(segment), longestSegment)
  return /^[\w$-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key).replaceAll(lineBreaks, ' ')}]`
}

/** Line and column of an offset, both from 1; the column in UTF-16 units, as editors count. */
function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}

function shorten(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest).toWellFormed()}…`
}
