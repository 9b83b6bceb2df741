/** Tests that the mock backend's streams equal its complete responses and can be aborted. */
import fc from 'fast-check'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createMockBackend } from '../../src/providers/mock.ts'
import { iteratorDone, neverAborted } from '../support/backend.ts'
import {
  type Body,
  backend,
  chatRequest,
  clock,
  complete,
  joinChoice,
  parseChunks,
  streamText,
  weather,
  weatherSchema,
} from '../support/mock.ts'

describe('a mock stream', () => {
  test('yields the same response as a non-streaming call, for any request', async () => {
    const word = fc.constantFrom(
      'get_time',
      'get_weather',
      'city=x',
      '🎉',
      ' \n',
      'é',
      '[[tokens:3]]',
      '[[delay:2]]',
      '[[tool:t {"a": "[[b]]"}]]',
      '[[',
    )
    const content = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(fc.oneof(word, fc.string())).map((words) => words.join(' ')),
    )
    const options = fc.record(
      {
        tools: fc.constant([clock, weather]),
        tool_choice: fc.constantFrom('none', 'auto', 'required', null, weather),
        parallel_tool_calls: fc.boolean(),
        n: fc.constantFrom(1, 2, 3, null),
        stop: fc.constantFrom('a', ['e', ' '], null),
        max_tokens: fc.constantFrom(1, 3, 100, null),
        seed: fc.constant(5),
        logprobs: fc.boolean(),
        stream_options: fc.constant({ include_usage: true }),
        response_format: fc.constantFrom(
          { type: 'json_object' },
          { type: 'json_schema', json_schema: { schema: weatherSchema } },
        ),
      },
      { requiredKeys: ['seed'] },
    )
    await fc.assert(
      fc.asyncProperty(content, options, async (text, more) => {
        const body = chatRequest(text, more)
        const whole = await complete(body)
        const streamed = await streamText(body)
        const chunks = parseChunks(streamed)
        expect(streamed.endsWith('data: [DONE]\n\n')).toBe(true)
        expect(new Set(chunks.map((chunk) => chunk.id))).toEqual(new Set([whole.id]))
        for (const { index, message, finish_reason } of whole.choices) {
          const calls = message.tool_calls?.map(
            (call) => call.type === 'function' && { id: call.id, ...call.function },
          )
          expect(joinChoice(chunks, index)).toEqual({
            content: message.content,
            calls: calls ?? [],
            finish: finish_reason,
          })
        }
        expect(chunks.at(-1)?.usage).toEqual('stream_options' in more ? whole.usage : undefined)
      }),
      { numRuns: 100 },
    )
  })
})

describe('a call to the mock backend', () => {
  const createStuck = () =>
    createMockBackend({
      name: 'mock',
      clock: Date,
      newId: () => 'id',
      wait: (_ms, waitSignal) =>
        new Promise((_, reject) => {
          waitSignal.addEventListener('abort', () => reject(new Error('wait ended')), { once: true })
        }),
    })

  test.each(['complete', 'stream', 'listModels'] as const)(
    'for %s fails if its signal is already aborted',
    async (verb) => {
      const gone = AbortSignal.abort(new Error('gone'))
      const attempt =
        verb === 'listModels'
          ? backend.listModels(gone)
          : backend[verb]({ body: chatRequest('hi'), signal: gone })
      await expect(attempt).rejects.toThrow('gone')
    },
  )

  test("fails with the signal's reason if it is aborted during a delay", async () => {
    const caller = new AbortController()
    const request = { body: chatRequest('[[delay:1000]] hi'), signal: caller.signal }
    const reader = await createStuck().stream(request)
    const attempts = [reader.next(), createStuck().complete(request)]
    caller.abort(new Error('left'))
    for (const attempt of attempts) await expect(attempt).rejects.toThrow('left')
    expect(await reader.next()).toEqual(iteratorDone)
  })

  test('fails if it is aborted between two reads of its stream', async () => {
    const caller = new AbortController()
    const reader = await backend.stream({ body: chatRequest('[[tokens:500]]'), signal: caller.signal })
    await reader.next()
    caller.abort(new Error('left'))
    await expect(reader.next()).rejects.toThrow('left')
  })

  test('ends its current delay if its reader calls return()', async () => {
    const reader = await createStuck().stream({
      body: chatRequest('[[delay:1000]] hi'),
      signal: neverAborted,
    })
    const pending = reader.next()
    expect(await reader.return?.()).toEqual(iteratorDone)
    expect(await pending).toEqual(iteratorDone)
    expect(await reader.next()).toEqual(iteratorDone)
  })
})

describe('the official client with the mock backend', () => {
  const client = new OpenAI({
    apiKey: 'unused',
    baseURL: 'http://127.0.0.1:1/v1',
    maxRetries: 0,
    fetch: async (_url, init) => {
      const body = JSON.parse(String(init?.body)) as Body
      if (body.stream !== true) {
        const bytes = await backend.complete({ body, signal: neverAborted })
        return new Response(Buffer.from(bytes), { headers: { 'Content-Type': 'application/json' } })
      }
      return new Response(await streamText(body), { headers: { 'Content-Type': 'text/event-stream' } })
    },
  })
  const Plan = z.object({
    title: z.string().min(10),
    steps: z.array(z.object({ minutes: z.int().positive(), kind: z.enum(['walk', 'ride']) })).min(2),
    note: z.string().nullable(),
  })

  test('can parse a structured response, complete or streamed', async () => {
    const request = {
      model: 'mock',
      messages: [{ role: 'user' as const, content: 'plan' }],
      response_format: zodResponseFormat(Plan, 'plan'),
    }
    const whole = (await client.chat.completions.parse(request)).choices[0]?.message.parsed
    expect(Plan.parse(whole).steps).toHaveLength(2)
    const streamed = await client.chat.completions.stream(request).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual(whole)
  })

  test.each([[false], [true]])('can run tools until the final response (stream: %s)', async (stream) => {
    const asked: unknown[] = []
    const run = {
      type: 'function' as const,
      function: {
        name: 'get_weather',
        description: 'Reports the weather.',
        parameters: weatherSchema,
        parse: JSON.parse,
        function: (args: unknown) => {
          asked.push(args)
          return 'sunny'
        },
      },
    }
    const request = {
      model: 'mock',
      messages: [{ role: 'user' as const, content: 'get_weather city=Oslo [[delay:1]]' }],
      tools: [run],
    }
    const runner = stream
      ? client.chat.completions.runTools({ ...request, stream })
      : client.chat.completions.runTools({ ...request, stream: false })
    expect(await runner.finalContent()).toBe('The tool answered: sunny')
    expect(asked).toEqual([{ city: 'Oslo', unit: 'kelvin' }])
  })
})
