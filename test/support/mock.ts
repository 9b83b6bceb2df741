/** Creates mock providers and requests for them, and joins their answers like a client. */
import type OpenAI from 'openai'
import { createMockBackend } from '../../src/providers/mock.ts'
import { never, readAll } from './backend.ts'

/** The body of a chat request. */
export type Body = Record<string, unknown>

interface ToolCallDelta {
  index: number
  id?: string
  type?: string
  function: { name?: string; arguments: string }
}

/** An event of a stream, with the fields that tests use. */
export interface Chunk {
  id: string
  object: string
  created: number
  model: string
  choices: {
    index: number
    delta: { role?: string; content?: string | null; tool_calls?: ToolCallDelta[] }
    finish_reason: string | null
    logprobs?: { content: { token: string }[] }
  }[]
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number }
}

/** Creates a mock provider with a fixed clock that records waits instead of waiting. */
export function createWorld() {
  const waitsMs: number[] = []
  let ids = 0
  const backend = createMockBackend({
    name: 'mock',
    clock: { now: () => 1_700_000_000_999 },
    newId: () => `id${++ids}`,
    wait: async (ms) => {
      waitsMs.push(ms)
    },
  })
  return { backend, waitsMs }
}

/** A mock provider for tests that use neither waits nor ids. */
export const { backend } = createWorld()

/** Returns a request with `content` as the user message. */
export function say(content: unknown, more: Body = {}): Body {
  return { model: 'mock', messages: [{ role: 'user', content }], ...more }
}

/** Requests a non-streaming answer, which must be valid UTF-8 and JSON. */
export async function complete(body: Body, from = backend) {
  const bytes = await from.complete({ body, signal: never })
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as OpenAI.ChatCompletion
}

/** Requests a non-streaming answer; returns its first choice. */
export async function answerTo(body: Body) {
  const choice = (await complete(body)).choices[0]
  if (choice === undefined) throw new Error('the answer has no choices')
  return choice
}

/** Requests a non-streaming answer; returns its text, or null when it calls tools. */
export async function textOf(body: Body) {
  return (await answerTo(body)).message.content
}

/** Requests a non-streaming answer; returns its tool calls as names and parsed arguments. */
export async function callsOf(body: Body) {
  const calls = (await answerTo(body)).message.tool_calls ?? []
  return calls.flatMap((call) =>
    call.type === 'function' ? [[call.function.name, JSON.parse(call.function.arguments)]] : [],
  )
}

/** Requests a streamed response; returns all of its text. */
export async function streamText(body: Body, from = backend) {
  return (await readAll(await from.stream({ body, signal: never }))).toString('utf8')
}

/** Parses the events of a stream except `[DONE]`; ignores text after the last blank line. */
export function parseChunks(text: string): Chunk[] {
  const events = text.split('\n\n').slice(0, -1)
  return events
    .filter((event) => event !== 'data: [DONE]')
    .map((event) => JSON.parse(event.replace(/^data: /, '')))
}

/** Requests a streamed response; returns its events. */
export async function streamChunks(body: Body) {
  return parseChunks(await streamText(body))
}

/** Joins the deltas of one choice like a client. */
export function joinChoice(chunks: readonly Chunk[], index: number) {
  const parts = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index)
  const calls: { id: string | undefined; name: string; arguments: string }[] = []
  for (const delta of parts.flatMap((part) => part.delta.tool_calls ?? [])) {
    const call = calls[delta.index] ?? { id: delta.id, name: delta.function.name ?? '', arguments: '' }
    calls[delta.index] = { ...call, arguments: call.arguments + delta.function.arguments }
  }
  const content = parts.map((part) => part.delta.content ?? '').join('')
  return { content: calls.length > 0 ? null : content, calls, finish: parts.at(-1)?.finish_reason }
}

/** Returns a tool in the form of a request. */
export function tool(name: string, parameters?: unknown) {
  return { type: 'function', function: { name, ...(parameters !== undefined && { parameters }) } }
}

/** The parameters of `weather`. */
export const weatherSchema = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    days: { type: 'integer', minimum: 1, maximum: 7 },
    celsius: { type: 'boolean' },
    unit: { enum: ['kelvin', 'celsius'] },
    tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['city', 'unit'],
}

/** A tool with parameters. */
export const weather = tool('get_weather', weatherSchema)

/** A tool without parameters. */
export const clock = tool('get_time')
