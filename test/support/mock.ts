/** Mock backends, requests for them, and their answers put together as a client does. */
import type OpenAI from 'openai'
import { createMockBackend } from '../../src/providers/mock.ts'
import { never, readAll } from './backend.ts'

/** A request body of the chat API. */
export type Body = Record<string, unknown>

interface ToolCallDelta {
  index: number
  id?: string
  type?: string
  function: { name?: string; arguments: string }
}

/** An event of a stream, as far as tests look into it. */
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

/** A backend on a fixed clock whose waits are written down instead of waited for. */
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

/** The backend of tests that neither wait nor count ids. */
export const { backend } = createWorld()

/** A request in which the user says `content`. */
export function say(content: unknown, more: Body = {}): Body {
  return { model: 'mock', messages: [{ role: 'user', content }], ...more }
}

/** The whole answer; it is valid UTF-8 and JSON. */
export async function complete(body: Body, from = backend) {
  const bytes = await from.complete({ body, signal: never })
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as OpenAI.ChatCompletion
}

/** The first choice of the whole answer. */
export async function answerTo(body: Body) {
  const choice = (await complete(body)).choices[0]
  if (choice === undefined) throw new Error('an answer without choices')
  return choice
}

/** The text of the whole answer; null when tools are called. */
export async function textOf(body: Body) {
  return (await answerTo(body)).message.content
}

/** The tool calls of the whole answer, each as its name and its parsed arguments. */
export async function callsOf(body: Body) {
  const calls = (await answerTo(body)).message.tool_calls ?? []
  return calls.flatMap((call) =>
    call.type === 'function' ? [[call.function.name, JSON.parse(call.function.arguments)]] : [],
  )
}

/** All that a streamed answer sends. */
export async function streamText(body: Body, from = backend) {
  return (await readAll(await from.stream({ body, signal: never }))).toString('utf8')
}

/** The events of a stream but for `[DONE]`; what follows the last blank line is left out. */
export function parseChunks(text: string): Chunk[] {
  const events = text.split('\n\n').slice(0, -1)
  return events
    .filter((event) => event !== 'data: [DONE]')
    .map((event) => JSON.parse(event.replace(/^data: /, '')))
}

/** The events of a streamed answer. */
export async function streamChunks(body: Body) {
  return parseChunks(await streamText(body))
}

/** Puts the deltas of one choice together, as a client does. */
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

/** A tool as a request offers it. */
export function tool(name: string, parameters?: unknown) {
  return { type: 'function', function: { name, ...(parameters !== undefined && { parameters }) } }
}

/** What `weather` takes. */
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

/** A tool with arguments. */
export const weather = tool('get_weather', weatherSchema)

/** A tool without arguments. */
export const clock = tool('get_time')
