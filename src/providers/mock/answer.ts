/** Builds the mock provider's answer to a chat request. */
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
import { type Directives, parseDirectives, type ToolCall } from './directives.ts'
import { sampleSchema } from './sample-schema.ts'
import { chooseToolCalls } from './tool-calls.ts'
import { countWords, makeWords, splitJson, splitWords } from './words.ts'

export interface Answer {
  readonly idText: string
  readonly model: string
  readonly choiceCount: number
  readonly pieces: readonly string[]
  readonly toolCalls: readonly ToolCall[]
  readonly finishReason: 'stop' | 'length' | 'tool_calls'
  /** Alternatives for each piece; undefined without log probabilities. */
  readonly alternativeCount: number | undefined
  readonly usage: Usage
}

const maxChoices = 128
const maxAlternatives = 20
const maxStops = 16

export function readDirectives(body: JsonObject): Directives {
  const message = listObjects(body.messages).findLast(({ role }) => role === 'user')
  return parseDirectives(toText(message?.content))
}

/** Counts tokens as words. @throws BackendFailure status 400 for a `response_format` without a valid instance. */
export function makeAnswer(body: JsonObject, directives: Directives, newId: () => string): Answer {
  const { seed, model, messages } = body
  const toolCalls = chooseToolCalls(body, directives)
  const { pieces, isCut } = toolCalls.length > 0 ? { pieces: [], isCut: false } : makePieces(body, directives)
  const choiceCount = Math.min(toCount(body.n, 1) ?? 1, maxChoices)
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
    alternativeCount:
      body.logprobs === true ? Math.min(toCount(body.top_logprobs, 0) ?? 0, maxAlternatives) : undefined,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  }
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

function makeJson(format: unknown, text: string): string | undefined {
  if (!isJsonObject(format)) return undefined
  if (format.type === 'json_object') return JSON.stringify({ answer: text })
  if (format.type !== 'json_schema') return undefined
  const schema = isJsonObject(format.json_schema) ? format.json_schema.schema : undefined
  const instance = sampleSchema(schema ?? { type: 'object' })
  if (instance !== undefined) return JSON.stringify(instance)
  const message = 'The mock backend found no instance of this schema.'
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
