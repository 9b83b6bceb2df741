/** Tests the Responses API with the official client, configured only with a base URL and a key. */
import OpenAI from 'openai'
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const harness = await startChatHarness()

const weather = {
  type: 'function' as const,
  name: 'weather',
  description: null,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
}

describe('responses.create', () => {
  test('returns the text', async () => {
    const client = (await startApp()).openai()
    const response = await client.responses.create({ model: 'mock', input: 'hello' })
    expect(response.output_text).toBe('You said: hello')
    expect(response._request_id).toMatch(/^[\w-]{36}$/)
  })

  test('parses the text with the schema in the request', async () => {
    const Person = z.object({ name: z.string(), age: z.int().min(0) })
    const client = (await startApp()).openai()
    const text = { format: zodTextFormat(Person, 'person') }
    const { output_parsed } = await client.responses.parse({ model: 'mock', input: 'Who?', text })
    expect(Person.safeParse(output_parsed).success).toBe(true)
  })

  test('accepts the output of one response as input for the next', async () => {
    const client = (await startApp()).openai()
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'weather city=Oslo' }]
    const first = await client.responses.create({ model: 'mock', input, tools: [weather] })
    input.push(...(first.output as OpenAI.Responses.ResponseInputItem[]))
    for (const item of first.output) {
      if (item.type !== 'function_call') continue
      expect(JSON.parse(item.arguments)).toEqual({ city: 'Oslo' })
      input.push({ type: 'function_call_output', call_id: item.call_id, output: 'Rain.' })
    }
    const second = await client.responses.create({ model: 'mock', input, tools: [weather] })
    expect(second.output_text).toBe('The tool answered: Rain.')
  })

  type Failing = [string, new (...args: never[]) => Error, number, string, object]
  test.each<Failing>([
    ['an invalid field', OpenAI.BadRequestError, 400, 'invalid_value', { temperature: 3 }],
    ['an unknown model', OpenAI.NotFoundError, 404, 'model_not_found', { model: 'gone' }],
    ['a busy backend', OpenAI.RateLimitError, 429, 'rate_limit_exceeded', { input: '[[error:429]]' }],
    ['a failing backend', OpenAI.InternalServerError, 502, 'backend_error', { input: '[[error:500]]' }],
  ])("throws the client's error class for %s", async (_what, kind, status, code, change) => {
    const client = (await startApp({}, { clock: createFakeClock() })).openai()
    for (const stream of [false, true]) {
      const request = client.responses.create({ model: 'mock', input: 'hello', ...change, stream })
      const failure = await request.then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(failure).toBeInstanceOf(kind)
      expect(failure).toMatchObject({ status, code, requestID: expect.any(String) })
    }
  })
})

describe('responses.stream', () => {
  test('assembles the response from its events', async () => {
    const client = (await startApp()).openai()
    const stream = client.responses.stream({ model: 'mock', input: 'one two' })
    const deltas: string[] = []
    stream.on('response.output_text.delta', ({ delta, snapshot }) => {
      deltas.push(delta)
      expect(snapshot).toBe(deltas.join(''))
    })
    const response = await stream.finalResponse()
    expect(deltas).toEqual(['You', ' said:', ' one', ' two'])
    expect(response).toMatchObject({
      status: 'completed',
      output_text: 'You said: one two',
      usage: { output_tokens: 4 },
    })
  })

  test('parses text and arguments with the schemas in the request', async () => {
    const client = (await startApp()).openai()
    const Person = z.object({ name: z.string(), age: z.int().min(0) })
    const text = { format: zodTextFormat(Person, 'person') }
    const spoken = await client.responses.stream({ model: 'mock', input: 'Who?', text }).finalResponse()
    expect(Person.safeParse(spoken.output_parsed).success).toBe(true)
    const tools = [zodResponsesFunction({ name: 'weather', parameters: z.object({ city: z.string() }) })]
    const request = { model: 'mock', input: 'weather city=Oslo', tools }
    const { output } = await client.responses.stream(request).finalResponse()
    expect(output).toMatchObject([{ type: 'function_call', parsed_arguments: { city: 'Oslo' } }])
  })

  test('assembles reasoning, text and parallel calls through a gateway', async () => {
    const client = (await harness.start()).openai()
    const input =
      '{{up:reasoning Let me see.}}{{up:text Wait.}}{{up:tool f {"a":1}}}{{up:tool g {"b":[2,3]}}}'
    const response = await client.responses.stream({ model: 'up-chat', input }).finalResponse()
    expect(response.output).toMatchObject([
      { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Let me see.' }] },
      { type: 'message', content: [{ type: 'output_text', text: 'Wait.' }] },
      { type: 'function_call', name: 'f', call_id: 'call_0', arguments: '{"a":1}' },
      { type: 'function_call', name: 'g', call_id: 'call_1', arguments: '{"b":[2,3]}' },
    ])
  })

  test('reports an interruption and returns the text before it', async () => {
    const client = (await startApp()).openai()
    const stream = client.responses.stream({ model: 'mock', input: '[[break:3]] a b c' })
    expect(await stream.finalResponse()).toMatchObject({
      status: 'failed',
      error: { code: 'stream_interrupted' },
      output_text: 'You said:',
    })
  })

  test.each(['abort', 'break'])(
    'aborts the backend request when the client stops reading (%s)',
    async (how) => {
      const client = (await harness.start()).openai()
      const input = '{{up:hang-after 2}}'
      const stream = await client.responses.create({ model: 'up-chat', input, stream: true })
      for await (const _ of stream) {
        if (how === 'break') break
        stream.controller.abort()
      }
      const { id } = await harness.upstream.waitForRequest('hang-after')
      expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('client')
    },
  )
})
