/** Reads a chat request for an in-process model: its limits, tools and answer format. */
import type { ChatHistoryItem, ChatModelFunctions } from 'node-llama-cpp'
import { isJsonObject, type JsonObject, listObjects, listStrings } from '../../../src/lib/formats/json.ts'
import { findSizeProblem } from '../../../src/lib/formats/json-schema.ts'
import type { ChatRequest } from '../../../src/providers/chat-api.ts'
import { callersMistake } from '../../../src/providers/failures.ts'
import { parseToolChoice } from '../../../src/providers/render-answer.ts'
import { toGrammarSchema } from './grammar-schema.ts'
import { toHistory } from './history.ts'

const MOST_STOPS = 16
/** Without this limit, a model could call tools until its context is full. */
const MOST_CALLS = 8
/** At this value, only the most likely token remains. */
const SMALLEST_TOP_P = 1e-6

export interface OfferedTools {
  readonly functions: ChatModelFunctions
  readonly isRequired: boolean
  readonly mostCalls: number
}

export type AnswerFormat =
  | { readonly type: 'text' }
  | { readonly type: 'json' }
  | { readonly type: 'schema'; readonly schema: unknown }

export interface LocalChatRequest {
  readonly history: ChatHistoryItem[]
  readonly sampling: ReturnType<typeof readSampling>
  readonly stops: readonly string[]
  readonly maxTokens: number | undefined
  readonly tools: OfferedTools | undefined
  readonly format: AnswerFormat
}

/**
 * Reads a request that the server has validated. @throws BackendFailure status 400 for parameters that the
 * model does not support
 */
export function readChatRequest(
  body: JsonObject,
  { hasTools, newSeed }: { hasTools: boolean; newSeed: () => number },
): LocalChatRequest {
  const request = body as ChatRequest
  if ((request.n ?? 1) > 1) throw callersMistake('n', 'must be 1; this model returns one choice')
  if (request.logprobs) throw callersMistake('logprobs', 'is not supported by this model')
  const tools = readTools(request, hasTools)
  const format = readFormat(request.response_format)
  if (tools !== undefined && format.type !== 'text') {
    throw callersMistake('response_format', 'cannot be combined with tools for this model')
  }
  const limits = [request.max_tokens, request.max_completion_tokens].filter((limit) => limit != null)
  return {
    history: toHistory(request.messages),
    sampling: readSampling(request, newSeed),
    stops: listStrings(request.stop)
      .filter((stop) => stop !== '')
      .slice(0, MOST_STOPS),
    maxTokens: limits.length === 0 ? undefined : Math.min(...limits),
    tools,
    format,
  }
}

/**
 * Applies the chat API's defaults, because the library's differ and its default seed repeats within a second.
 */
function readSampling(request: ChatRequest, newSeed: () => number) {
  return {
    temperature: request.temperature ?? 1,
    topP: Math.max(request.top_p ?? 1, SMALLEST_TOP_P),
    seed: (request.seed ?? newSeed()) >>> 0,
    frequencyPenalty: request.frequency_penalty ?? 0,
    presencePenalty: request.presence_penalty ?? 0,
  }
}

function readTools(request: ChatRequest, hasTools: boolean): OfferedTools | undefined {
  const choice = parseToolChoice(request.tool_choice)
  if (choice === undefined)
    throw callersMistake('tool_choice', 'must be none, auto, required, a function, or allowed tools')
  const { mode, names } = choice
  const offered = (request.tools ?? []).flatMap((tool) =>
    tool.function === undefined ? [] : [tool.function],
  )
  const callable = offered.filter(({ name }) => names === undefined || names.has(name))
  if (mode === 'none' || offered.length === 0) return undefined
  if (!hasTools) throw callersMistake('tools', "are not supported by this model's chat template")
  if (callable.length === 0) throw callersMistake('tool_choice', 'must name one of the offered tools')
  assertUsable(
    'tools',
    callable.map(({ parameters }) => parameters),
  )
  return {
    functions: Object.fromEntries(
      callable.map(({ name, description, parameters }) => [
        name,
        {
          ...(description && { description }),
          params: toGrammarSchema(parameters ?? { type: 'object', properties: {} }),
        },
      ]),
    ),
    isRequired: mode === 'required',
    mostCalls: request.parallel_tool_calls === false ? 1 : MOST_CALLS,
  }
}

function readFormat(format: ChatRequest['response_format']): AnswerFormat {
  if (format == null || format.type === 'text') return { type: 'text' }
  if (format.type === 'json_object') return { type: 'json' }
  if (format.type !== 'json_schema') {
    throw callersMistake('response_format.type', 'must be text, json_object or json_schema')
  }
  const schema = isJsonObject(format.json_schema) ? format.json_schema.schema : undefined
  assertUsable('response_format', [schema])
  return { type: 'schema', schema }
}

/** Applies the limits for agents' tools, because native code compiles these schemas to a grammar. */
function assertUsable(param: string, schemas: readonly unknown[]): void {
  if (findSizeProblem(listObjects(schemas)) !== undefined) {
    throw callersMistake(param, 'must contain schemas of at most 64 KiB and 2000 values in total')
  }
  if (hasControls(schemas)) throw callersMistake(param, 'must not contain control characters')
}

/** Matches the control characters that the library does not escape. */
const controls = /[^\P{Cc}\n\r\t\x7f-\x9f]/u

function hasControls(schemas: readonly unknown[]): boolean {
  let isFound = false
  JSON.stringify(schemas, (key, value: unknown) => {
    isFound ||= controls.test(key) || (typeof value === 'string' && controls.test(value))
    return value
  })
  return isFound
}
