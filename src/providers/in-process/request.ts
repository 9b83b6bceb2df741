/** Reads a chat request as a model of this process can answer it: its limits, its tools, the format of its answer. */
import type { ChatHistoryItem, ChatModelFunctions } from 'node-llama-cpp'
import { isJsonObject, type JsonObject, listObjects, listStrings } from '../../lib/formats/json.ts'
import { findSizeProblem } from '../../lib/formats/json-schema.ts'
import type { ChatRequest } from '../chat-api.ts'
import { callersMistake } from '../failures.ts'
import { toGrammarSchema } from './grammar-schema.ts'
import { toHistory } from './history.ts'

const MOST_STOPS = 16
/** A model that keeps calling would go on until its context is full. */
const MOST_CALLS = 8
/** Below it every token but the likeliest is out already. */
const SMALLEST_TOP_P = 1e-6

/** How the next token is chosen, in the library's words. */
export interface Sampling {
  readonly temperature: number
  readonly topP: number
  readonly seed: number
  readonly frequencyPenalty: number
  readonly presencePenalty: number
}

/** The tools of a request, those it may call. */
export interface OfferedTools {
  readonly functions: ChatModelFunctions
  readonly isRequired: boolean
  readonly mostCalls: number
}

/** The form of the answer: any text, any JSON object, or JSON of a schema. */
export type AnswerFormat =
  | { readonly type: 'text' }
  | { readonly type: 'json' }
  | { readonly type: 'schema'; readonly schema: unknown }

/** A chat request that has been read. */
export interface LocalChatRequest {
  readonly history: ChatHistoryItem[]
  readonly sampling: Sampling
  readonly stops: readonly string[]
  /** Undefined = as many as there is room for. */
  readonly maxTokens: number | undefined
  readonly tools: OfferedTools | undefined
  readonly format: AnswerFormat
}

/**
 * Reads the request, whose shape the door has checked.
 * @throws BackendFailure 400 for what such a model cannot do.
 */
export function readChatRequest(
  body: JsonObject,
  { hasTools, newSeed }: { hasTools: boolean; newSeed: () => number },
): LocalChatRequest {
  const request = body as ChatRequest
  if ((request.n ?? 1) > 1) throw callersMistake('n', 'must be 1: this model answers with one choice')
  if (request.logprobs) throw callersMistake('logprobs', 'is nothing this model can tell')
  const tools = readTools(request, hasTools)
  const format = readFormat(request.response_format)
  if (tools !== undefined && format.type !== 'text') {
    throw callersMistake('response_format', 'cannot be had together with tools from this model')
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

/** The chat API's own defaults; the library has others, and without a seed it answers alike all through a second. */
function readSampling(request: ChatRequest, newSeed: () => number): Sampling {
  return {
    temperature: request.temperature ?? 1,
    topP: Math.max(request.top_p ?? 1, SMALLEST_TOP_P),
    seed: (request.seed ?? newSeed()) >>> 0,
    frequencyPenalty: request.frequency_penalty ?? 0,
    presencePenalty: request.presence_penalty ?? 0,
  }
}

function readTools(request: ChatRequest, hasTools: boolean): OfferedTools | undefined {
  const { mode, names } = readChoice(request.tool_choice)
  const offered = (request.tools ?? []).flatMap((tool) =>
    tool.function === undefined ? [] : [tool.function],
  )
  const callable = offered.filter(({ name }) => names === undefined || names.has(name))
  if (mode === 'none' || offered.length === 0) return undefined
  if (!hasTools) throw callersMistake('tools', 'cannot be offered: the chat template of this model has none')
  if (callable.length === 0) throw callersMistake('tool_choice', 'must name a tool that is offered')
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

interface Choice {
  readonly mode: 'none' | 'auto' | 'required'
  /** The tools that may be called; undefined = all. */
  readonly names?: ReadonlySet<string>
}

/** All four forms of `tool_choice`. Decision: 7. */
function readChoice(choice: ChatRequest['tool_choice']): Choice {
  if (choice == null || choice === 'auto') return { mode: 'auto' }
  if (choice === 'none' || choice === 'required') return { mode: choice }
  if (typeof choice === 'object' && choice.function !== undefined) {
    return { mode: 'required', names: new Set([choice.function.name]) }
  }
  if (typeof choice === 'object' && choice.allowed_tools !== undefined) {
    const { tools, mode } = choice.allowed_tools
    const names = new Set(tools.flatMap((tool) => (tool.function === undefined ? [] : [tool.function.name])))
    return { mode: mode === 'required' ? 'required' : 'auto', names }
  }
  throw callersMistake('tool_choice', 'must be none, auto, required, a function, or allowed tools')
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

/** A grammar is made of them, natively: they are kept within what an agent's may be. Security: 2.5 (tool schemas). */
function assertUsable(param: string, schemas: readonly unknown[]): void {
  if (findSizeProblem(listObjects(schemas)) !== undefined) {
    throw callersMistake(param, 'must hold at most 64 KiB and 2000 values of schemas')
  }
  if (hasControls(schemas)) throw callersMistake(param, 'must not hold control characters')
}

/** But for line ends and tabs, which the library escapes. */
const controls = /[^\P{Cc}\n\r\t\x7f-\x9f]/u

function hasControls(schemas: readonly unknown[]): boolean {
  let isFound = false
  JSON.stringify(schemas, (key, value: unknown) => {
    isFound ||= controls.test(key) || (typeof value === 'string' && controls.test(value))
    return value
  })
  return isFound
}
