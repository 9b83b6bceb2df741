/** Builds the mock provider's chat answer: text, an instance of a schema, or tool calls. */
import { hash } from 'node:crypto'
import {
  isJsonObject,
  type JsonObject,
  listObjects,
  listStrings,
  toCount,
  toText,
} from '../../lib/formats/json.ts'
import type { Usage } from '../chat-api.ts'
import { BackendFailure } from '../provider.ts'
import { parseToolChoice } from '../render-answer.ts'
import { type Directives, parseDirectives, type ToolCall } from './directives.ts'
import { sampleSchema } from './sample-schema.ts'
import { countWords, makeWords, splitJson, splitWords } from './words.ts'

export interface Answer {
  readonly idText: string
  readonly model: string
  readonly choiceCount: number
  readonly pieces: readonly string[]
  readonly toolCalls: readonly ToolCall[]
  readonly finishReason: 'stop' | 'length' | 'tool_calls'
  /** Number of alternatives per token; undefined without log probabilities. */
  readonly alternativeCount: number | undefined
  readonly usage: Usage
}

const maxChoices = 128
const maxAlternatives = 20
const maxStops = 16
/** Limits answers with several choices or log probabilities, which can be far larger than the request. */
const maxAnswerBytes = 8 * 1024 * 1024
/** Estimated bytes of a stream event or a token alternative. */
const bytesPerPiece = 150
/** Log probabilities list a token's bytes twice, as decimal numbers. */
const bytesPerListedByte = 10

export function readDirectives(body: JsonObject): Directives {
  const message = listObjects(body.messages).findLast(({ role }) => role === 'user')
  return parseDirectives(toText(message?.content))
}

/**
 * Builds an answer, counting each word as a token. @throws BackendFailure status 400 if no instance matches
 * `response_format`.
 */
export function makeAnswer(body: JsonObject, directives: Directives, newId: () => string): Answer {
  const { seed, model, messages } = body
  const toolCalls = chooseToolCalls(body, directives)
  const { pieces, isCut } = toolCalls.length > 0 ? { pieces: [], isCut: false } : makePieces(body, directives)
  const choiceCount = Math.min(toCount(body.n, 1) ?? 1, maxChoices)
  const alternativeCount =
    body.logprobs === true ? Math.min(toCount(body.top_logprobs, 0) ?? 0, maxAlternatives) : undefined
  assertSize({ choiceCount, pieces, toolCalls, alternativeCount })
  const called = toolCalls.reduce((sum, call) => sum + 1 + splitJson(call.argumentsText).length, 0)
  const [promptTokens, completionTokens] = [countPrompt(body), choiceCount * (pieces.length + called)]
  return {
    idText:
      typeof seed === 'number'
        ? hash('sha256', JSON.stringify([seed, model, messages])).slice(0, 24)
        : newId(),
    model: typeof model === 'string' ? model : 'mock',
    choiceCount,
    pieces,
    toolCalls,
    finishReason: toolCalls.length > 0 ? 'tool_calls' : isCut ? 'length' : 'stop',
    alternativeCount,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  }
}

/** @throws BackendFailure status 400 if the answer would be too large. */
function assertSize({
  choiceCount,
  pieces,
  toolCalls,
  alternativeCount,
}: Pick<Answer, 'choiceCount' | 'pieces' | 'toolCalls' | 'alternativeCount'>): void {
  if (choiceCount === 1 && alternativeCount === undefined) return
  const texts = [...pieces, ...toolCalls.map(({ argumentsText }) => argumentsText)]
  const textLength = texts.reduce((sum, text) => sum + text.length, 0)
  const bytesPerChoice =
    (alternativeCount === undefined ? 1 : bytesPerListedByte) * textLength +
    bytesPerPiece * (alternativeCount === undefined ? 1 : alternativeCount + 2) * pieces.length
  if (choiceCount * bytesPerChoice <= maxAnswerBytes) return
  const message = `n: the mock provider's answer would be larger than ${maxAnswerBytes} bytes; ask for fewer choices, tokens or log probabilities.`
  throw new BackendFailure('status', message, {
    status: 400,
    said: { message, code: 'invalid_value', param: 'n' },
  })
}

function makePieces(body: JsonObject, directives: Directives): { pieces: readonly string[]; isCut: boolean } {
  const text = makeText(body, directives)
  const json = makeJson(body.response_format, text)
  const stopped = cutAtStop(json ?? text, listStrings(body.stop).slice(0, maxStops))
  const pieces = json === undefined ? splitWords(stopped) : splitJson(stopped)
  const limits = [body.max_tokens, body.max_completion_tokens].map(
    (limit) => toCount(limit, 0) ?? pieces.length,
  )
  const limit = Math.min(...limits)
  return { pieces: pieces.slice(0, limit), isCut: limit < pieces.length }
}

function makeText(body: JsonObject, { text, wordCount }: Directives): string {
  if (wordCount !== undefined) return makeWords(wordCount)
  const messages = listObjects(body.messages)
  const results = messages.slice(messages.findLastIndex(({ role }) => role !== 'tool') + 1)
  if (results.length === 0) return `You said: ${text}`
  return results.map(({ content }) => `The tool answered: ${toText(content)}`).join('\n')
}

/** The questions that the mock suggests to the widget; a schema alone would give the word "text". */
const followUps = ['How does this work?', 'Can you give me an example?', 'What should I do next?']

function makeJson(format: unknown, text: string): string | undefined {
  if (!isJsonObject(format)) return undefined
  if (format.type === 'json_object') return JSON.stringify({ answer: text })
  if (format.type !== 'json_schema') return undefined
  const { name, schema } = isJsonObject(format.json_schema) ? format.json_schema : {}
  if (name === 'follow_ups') return JSON.stringify({ questions: followUps })
  const instance = sampleSchema(schema ?? { type: 'object' })
  if (instance !== undefined) return JSON.stringify(instance)
  const message = 'response_format: the mock provider could not generate an instance of this schema'
  const said = { message, code: 'invalid_json_schema', param: 'response_format' }
  throw new BackendFailure('status', message, { status: 400, said })
}

function cutAtStop(text: string, stops: readonly string[]): string {
  const places = stops.filter((stop) => stop !== '').map((stop) => text.indexOf(stop))
  return text.slice(0, Math.min(text.length, ...places.filter((place) => place !== -1)))
}

function countPrompt(body: JsonObject): number {
  return listObjects(body.messages).reduce((sum, { content, tool_calls }) => {
    const calls = listObjects(tool_calls).flatMap((call) => listObjects([call.function]))
    const called = calls.flatMap((call) => listStrings([call.name, call.arguments]))
    return sum + 1 + [toText(content), ...called].reduce((words, text) => words + countWords(text), 0)
  }, 0)
}

/**
 * Returns calls to the tools in directives. Without directives, calls the offered tools whose names occur in
 * the text or, if none occurs and a call is required, the first offered tool.
 */
function chooseToolCalls(body: JsonObject, { text, toolCalls }: Directives): readonly ToolCall[] {
  const { mode, names } = parseToolChoice(body.tool_choice) ?? { mode: 'auto' }
  if (mode === 'none' || listObjects(body.messages).at(-1)?.role === 'tool') return []
  const calls =
    toolCalls.length > 0 ? toolCalls : callOffered(listOffered(body.tools, names), mode === 'required', text)
  return body.parallel_tool_calls === false ? calls.slice(0, 1) : calls
}

function listOffered(
  tools: unknown,
  names: ReadonlySet<unknown> | undefined,
): ReadonlyMap<string, JsonObject> {
  const offered = listObjects(tools).flatMap((tool) => listObjects([tool.function]))
  return new Map(
    offered.flatMap((tool) => {
      const { name } = tool
      const isOffered = typeof name === 'string' && name !== '' && (names === undefined || names.has(name))
      return isOffered ? [[name, tool]] : []
    }),
  )
}

function callOffered(
  offered: ReadonlyMap<string, JsonObject>,
  isRequired: boolean,
  text: string,
): readonly ToolCall[] {
  const mentioned = [...offered.keys()]
    .map((name) => ({ name, at: findName(text, name) }))
    .filter(({ at }) => at !== -1)
    .sort((one, other) => one.at - other.at)
    .map(({ name }) => name)
  const names = mentioned.length === 0 && isRequired ? [...offered.keys()].slice(0, 1) : mentioned
  if (names.length === 0) return []
  const hints = parseHints(text)
  return names.map((name) => {
    const instance = sampleSchema(offered.get(name)?.parameters, hints)
    return { name, argumentsText: JSON.stringify(isJsonObject(instance) ? instance : {}) }
  })
}

function findName(text: string, name: string): number {
  const isNamePart = (character: string | undefined) => character !== undefined && /[\w-]/.test(character)
  let at = text.indexOf(name)
  while (at !== -1 && (isNamePart(text[at - 1]) || isNamePart(text[at + name.length]))) {
    at = text.indexOf(name, at + 1)
  }
  return at
}

/**
 * Reads a text's `key=value` words; values with spaces must be quoted, and trailing punctuation is dropped.
 */
function parseHints(text: string): ReadonlyMap<string, string> {
  const words = text.matchAll(/(?<![\p{L}\p{N}_.-])([\p{L}_][\p{L}\p{N}_.-]{0,63})=("[^"]*"|'[^']*'|\S+)/gu)
  const hints = new Map<string, string>()
  for (const [, key = '', value = ''] of words) {
    const isQuoted = /^(".*"|'.*')$/s.test(value)
    hints.set(key, isQuoted ? value.slice(1, -1) : stripPunctuation(value))
  }
  return hints
}

function stripPunctuation(value: string): string {
  let end = value.length
  while (end > 1 && '.,;:!?)'.includes(value[end - 1] ?? ' ')) end -= 1
  return value.slice(0, end)
}
