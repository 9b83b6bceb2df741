/** Creates mock providers, sends requests to them and joins their streams. */
import type OpenAI from 'openai'
import { createMockBackend } from '../../src/providers/mock.ts'
import { neverAborted, readAll } from './backend.ts'

export type Body = Record<string, unknown>

interface ToolCallDelta {
  index: number
  id?: string
  type?: string
  function: { name?: string; arguments: string }
}

/** A chunk of a stream, with the fields that tests use. */
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

/** Creates a mock provider with a fixed clock; it records waits instead of waiting. */
export function createMockProvider() {
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

/** A mock provider that tests can share. */
export const { backend } = createMockProvider()

/** Returns a request body with `content` as the user message. */
export function chatRequest(content: unknown, more: Body = {}): Body {
  return { model: 'mock', messages: [{ role: 'user', content }], ...more }
}

/** Sends a non-streaming request; returns the parsed response. */
export async function complete(body: Body, from = backend) {
  const bytes = await from.complete({ body, signal: neverAborted })
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as OpenAI.ChatCompletion
}

/** Sends a non-streaming request; returns the first choice. */
export async function firstChoiceOf(body: Body) {
  const choice = (await complete(body)).choices[0]
  if (choice === undefined) throw new Error('the answer has no choices')
  return choice
}

/** Sends a non-streaming request; returns the text, or null if the model calls tools. */
export async function textOf(body: Body) {
  return (await firstChoiceOf(body)).message.content
}

/** Sends a non-streaming request; returns the names and the parsed arguments of the tool calls. */
export async function callsOf(body: Body) {
  const calls = (await firstChoiceOf(body)).message.tool_calls ?? []
  return calls.flatMap((call) =>
    call.type === 'function' ? [[call.function.name, JSON.parse(call.function.arguments)]] : [],
  )
}

/** Sends a streaming request; returns the complete response text. */
export async function streamText(body: Body, from = backend) {
  return (await readAll(await from.stream({ body, signal: neverAborted }))).toString('utf8')
}

/** Parses the complete events of a stream, without `[DONE]`. */
export function parseChunks(text: string): Chunk[] {
  const events = text.split('\n\n').slice(0, -1)
  return events
    .filter((event) => event !== 'data: [DONE]')
    .map((event) => JSON.parse(event.replace(/^data: /, '')))
}

/** Sends a streaming request; returns the chunks. */
export async function streamChunks(body: Body) {
  return parseChunks(await streamText(body))
}

/** Joins the deltas of one choice. */
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

/** Returns a tool for a request's `tools`. */
export function tool(name: string, parameters?: unknown) {
  return { type: 'function', function: { name, ...(parameters !== undefined && { parameters }) } }
}

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

export const weather = tool('get_weather', weatherSchema)

export const clock = tool('get_time')
