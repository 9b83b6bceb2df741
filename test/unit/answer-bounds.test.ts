/**
 * Tests the limits on a provider's response. A larger response could block the process or exhaust its memory.
 */
import { describe, expect, test } from 'vitest'
import { askForCompletion } from '../../src/chat/answers/model-answer.ts'
import { BackendFailure, type ChatBackend } from '../../src/providers/provider.ts'
import { answerOptions, readClientBytes } from '../support/client-streams.ts'

type Fields = Record<string, unknown>

const deep = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
const listIndexes = (count: number) => Array.from({ length: count }, (_, index) => index)
const toolCalls = (count: number) => listIndexes(count).map((index) => ({ id: `call_${index}` }))

/** Returns the kind of failure that a stream with these events causes, or undefined. */
async function streamEvents(...data: string[]): Promise<unknown> {
  const { failure } = await readClientBytes(data.map((text) => Buffer.from(`data: ${text}\n\n`)))
  return kindOf(failure)
}

/** Reads a stream with one choice in which each event has one of these deltas. */
function stream(...deltas: Fields[]): Promise<unknown> {
  const end = { index: 0, delta: {}, finish_reason: 'stop' }
  const choices = [...deltas.map((delta) => ({ index: 0, delta })), end]
  return streamEvents(...choices.map((choice) => JSON.stringify({ choices: [choice] })))
}

/** Returns the kind of failure that a complete response with this body causes, or undefined. */
async function completeBody(text: string): Promise<unknown> {
  const backend = { complete: async () => Buffer.from(text) } as unknown as ChatBackend
  const request = { body: {}, signal: new AbortController().signal }
  return askForCompletion(backend, request, undefined, answerOptions()).then(() => undefined, kindOf)
}

function complete(message: Fields): Promise<unknown> {
  return completeBody(JSON.stringify({ choices: [{ message }] }))
}

function kindOf(failure: unknown): unknown {
  return failure instanceof BackendFailure ? failure.kind : failure
}

describe.each([
  ['a streamed response', stream, streamEvents],
  ['a complete response', complete, completeBody],
])('%s', (_kind, answer, answerText) => {
  test.each<[string, Fields, Fields]>([
    ['128 tool calls', { tool_calls: toolCalls(128) }, { tool_calls: toolCalls(129) }],
    ['64 levels', { content: 'a', extra: deep(50) }, { content: 'a', extra: deep(62) }],
  ])('is rejected if it exceeds %s', async (_limit, within, beyond) => {
    expect(await answer(within)).toBeUndefined()
    expect(await answer(beyond)).toBe('protocol')
  })

  test('is rejected if it is nested so deeply that a recursive function would overflow the stack', async () => {
    const extra = '['.repeat(200_000) + ']'.repeat(200_000)
    expect(await answerText(`{"choices":[{"message":{"content":"a"},"extra":${extra}}]}`)).toBe('protocol')
  })

  test('is rejected if it contains more than 8 choices for a request for one choice', async () => {
    const choices = listIndexes(9).map((index) => ({
      ...{ index, finish_reason: 'stop' },
      message: { content: 'a' },
      delta: { content: 'a' },
    }))
    expect(await answerText(JSON.stringify({ choices: choices.slice(1) }))).toBeUndefined()
    expect(await answerText(JSON.stringify({ choices }))).toBe('protocol')
  })
})

describe('a streamed response', () => {
  test('is rejected if its events contain more than 128 tool calls in total', async () => {
    const deltas = listIndexes(129).map((index) => ({ tool_calls: [{ index }] }))
    expect(await stream(...deltas.slice(1))).toBeUndefined()
    expect(await stream(...deltas)).toBe('protocol')
  })

  test('is rejected if its events contain more than 8 choices in total for a request for one choice', async () => {
    const events = listIndexes(9).map((index) =>
      JSON.stringify({ choices: [{ index, delta: { content: 'a' } }] }),
    )
    expect(await streamEvents(...events)).toBe('protocol')
  })

  test('is rejected if an event contains more than 50,000 values', async () => {
    expect(await stream({ extra: Array(49_000).fill(0) })).toBeUndefined()
    expect(await stream({ extra: Array(50_001).fill(0) })).toBe('protocol')
  })

  test('is rejected if an event contains more than 50,000 values, even after a comment that contains a quotation mark', async () => {
    const chunk = JSON.stringify({ choices: [{ index: 0, delta: { extra: Array(50_001).fill(0) } }] })
    const { failure } = await readClientBytes([Buffer.from(`: "\ndata: ${chunk}\n\n`)])
    expect(kindOf(failure)).toBe('protocol')
  })
})

test('a complete response is rejected if it contains more than 1,000,000 values', async () => {
  expect(await complete({ content: 'a', extra: Array(900_000).fill(0) })).toBeUndefined()
  expect(await complete({ content: 'a', extra: Array(1_000_001).fill(0) })).toBe('protocol')
})
