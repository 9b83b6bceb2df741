/** Parses the mock provider's directives, written as `[[…]]` in messages. */
import { parseJson } from '../../lib/formats/json.ts'

export interface ToolCall {
  readonly name: string
  readonly argumentsText: string
}

export interface Directives {
  readonly text: string
  /** `[[tool:NAME {json}]]`, in order of appearance. */
  readonly toolCalls: readonly ToolCall[]
  /** `[[tokens:N]]`: answer with N words. */
  readonly wordCount?: number
  /** `[[delay:MS]]`: wait before each chunk, in milliseconds; 0 by default. */
  readonly delayMs: number
  /** `[[error:STATUS]]`: fail with this status. */
  readonly errorStatus?: number
  /** `[[break:N]]`: fail after N chunks. */
  readonly breakAfterChunks?: number
  /** `[[hang]]`: never respond. */
  readonly hangs: boolean
}

type Draft = { -readonly [Field in keyof Omit<Directives, 'text'>]: Directives[Field] } & {
  toolCalls: ToolCall[]
}

const maxWords = 100_000
const maxDelayMs = 600_000
const maxBrokenTools = 16
const maxArgumentsLength = 262_144

const plainDirective = /\[\[(?:(tokens|delay|error|break):(\d{1,9})|(hang))\]\]/y
const toolOpening = /\[\[tool:([^\s{}[\]]{1,128})\s{0,16}/y
const closing = /\s{0,16}\]\]/y

/**
 * Parses directives and removes them from the text; leaves invalid ones in the text, so that the echo shows
 * the mistake.
 */
export function parseDirectives(source: string): Directives {
  const draft: Draft = { toolCalls: [], delayMs: 0, hangs: false }
  const kept: string[] = []
  let keptUntil = 0
  let endsInSpace = true
  let brokenTools = 0
  for (let at = source.indexOf('[['); at !== -1; at = source.indexOf('[[', at)) {
    // Limits failed tool directives; otherwise, a text full of unclosed ones would be scanned once for each.
    const isTool = source.startsWith('[[tool:', at) && brokenTools < maxBrokenTools
    const end = isTool ? readTool(source, at, draft) : readPlain(source, at, draft)
    if (end === undefined) {
      if (isTool) brokenTools += 1
      at += 1
      continue
    }
    kept.push(source.slice(keptUntil, at))
    if (at > keptUntil) endsInSpace = isSpace(source[at - 1])
    at = end
    keptUntil = endsInSpace && isSpace(source[end]) ? end + 1 : end
  }
  const text = kept.join('') + source.slice(keptUntil)
  const hasDirectiveLast = keptUntil > 0 && keptUntil >= source.length
  return { ...draft, text: hasDirectiveLast && isSpace(text.at(-1)) ? text.slice(0, -1) : text }
}

function readPlain(source: string, at: number, draft: Draft): number | undefined {
  const match = matchAt(plainDirective, source, at)
  if (match === null) return undefined
  const value = Number(match[2])
  if (match[1] === 'error' && (value < 400 || value > 599)) return undefined
  if (match[1] === 'error') draft.errorStatus = value
  else if (match[1] === 'tokens') draft.wordCount = Math.min(value, maxWords)
  else if (match[1] === 'delay') draft.delayMs = Math.min(value, maxDelayMs)
  else if (match[1] === 'break') draft.breakAfterChunks = value
  else draft.hangs = true
  return at + match[0].length
}

function readTool(source: string, at: number, draft: Draft): number | undefined {
  const opening = matchAt(toolOpening, source, at)
  if (opening?.[1] === undefined) return undefined
  const start = at + opening[0].length
  const end = source[start] === '{' ? findObjectEnd(source, start) : start
  const close = end === undefined ? null : matchAt(closing, source, end)
  if (end === undefined || close === null) return undefined
  const argumentsText = start === end ? '{}' : source.slice(start, end)
  if (parseJson(argumentsText) === undefined) return undefined
  draft.toolCalls.push({ name: opening[1], argumentsText })
  return end + close[0].length
}

/** Returns the end of the JSON object at `start`; ignores `]]` and braces inside strings. */
function findObjectEnd(source: string, start: number): number | undefined {
  let depth = 0
  let isInString = false
  const limit = Math.min(source.length, start + maxArgumentsLength)
  for (let at = start; at < limit; at += 1) {
    const character = source[at]
    if (isInString && character === '\\') at += 1
    else if (character === '"') isInString = !isInString
    else if (isInString) continue
    else if (character === '{') depth += 1
    else if (character === '}' && --depth === 0) return at + 1
  }
  return undefined
}

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(source)
}

function isSpace(character: string | undefined): boolean {
  return character !== undefined && /\s/.test(character)
}
