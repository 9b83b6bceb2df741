/** Tests the chat API with the official OpenAI client, configured only with a base URL and a key. */
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const harness = await startChatHarness()

function ask(content: string) {
  return { model: 'mock', messages: [{ role: 'user' as const, content }] }
}

/** Uses a fake clock so that retries do not pause. */
const startMock = () => startApp({}, { clock: createFakeClock() })

describe('a completion', () => {
  test('is returned with its text, usage and request id', async () => {
    const completion = await (await startMock()).openai().chat.completions.create(ask('hello'))
    expect(completion.choices).toMatchObject([
      { index: 0, message: { role: 'assistant', content: 'You said: hello' }, finish_reason: 'stop' },
    ])
    expect(completion).toMatchObject({ object: 'chat.completion', model: 'mock', usage: { total_tokens: 5 } })
    expect(completion._request_id).toMatch(/^[\w-]{36}$/)
  })

  test('is parsed with the schema in the request', async () => {
    const Person = z.object({ name: z.string(), age: z.int().min(0) })
    const response_format = zodResponseFormat(Person, 'person')
    const client = (await startMock()).openai()
    const { choices } = await client.chat.completions.parse({ ...ask('Who?'), response_format })
    expect(Person.safeParse(choices[0]?.message.parsed).success).toBe(true)
    expect(choices[0]?.message.parsed).toEqual(JSON.parse(choices[0]?.message.content as string))
  })

  test('can be created with an agent key and without a model', async () => {
    const app = await startMock()
    const { agent_key } = await app.createAgent()
    const { messages } = ask('hello')
    const body = { messages } as OpenAI.ChatCompletionCreateParamsNonStreaming
    const completion = await app.openai(agent_key).chat.completions.create(body)
    expect(completion.choices[0]?.message.content).toBe('You said: hello')
  })
})

describe('a stream', () => {
  test('can be read chunk by chunk', async () => {
    const client = (await startMock()).openai()
    const stream = await client.chat.completions.create({ ...ask('one two'), stream: true })
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of stream) chunks.push(chunk)
    const choices = chunks.flatMap((chunk) => chunk.choices)
    expect(choices.map(({ delta }) => delta.content ?? '').join('')).toBe('You said: one two')
    expect(choices[0]?.delta.role).toBe('assistant')
    expect(choices.at(-1)).toMatchObject({ index: 0, delta: {}, finish_reason: 'stop' })
  })

  test("can be assembled by the client's helper, including usage", async () => {
    const client = (await startMock()).openai()
    const stream = client.chat.completions.stream({
      ...ask('one two'),
      stream_options: { include_usage: true },
    })
    expect(await stream.finalContent()).toBe('You said: one two')
    expect(await stream.totalUsage()).toMatchObject({ completion_tokens: 4 })
  })

  test("with several choices can be assembled by the client's helper", async () => {
    const client = (await startMock()).openai()
    const { choices } = await client.chat.completions.stream({ ...ask('hello'), n: 3 }).finalChatCompletion()
    expect(choices.map(({ message }) => message.content)).toEqual(Array(3).fill('You said: hello'))
  })

  test.each(['abort', 'break'])('aborts the backend request when the client ends it with %s', async (how) => {
    const client = (await harness.start()).openai()
    const stream = await client.chat.completions.create({
      ...ask('{{up:hang-after 2}}'),
      model: 'up-chat',
      stream: true,
    })
    for await (const _ of stream) {
      if (how === 'break') break
      stream.controller.abort()
    }
    const { id } = await harness.upstream.waitForRequest('hang-after')
    expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('client')
  })

  test('throws an APIError after the received chunks if it is interrupted', async () => {
    const client = (await startMock()).openai()
    const stream = await client.chat.completions.create({ ...ask('[[break:3]] a b c'), stream: true })
    const texts: unknown[] = []
    const reading = (async () => {
      for await (const { choices } of stream) texts.push(choices[0]?.delta.content)
    })()
    const failure = await reading.catch((thrown: unknown) => thrown)
    expect(failure).toBeInstanceOf(OpenAI.APIError)
    expect(failure).toMatchObject({ code: 'stream_interrupted', type: 'upstream_error' })
    expect(texts).toEqual(['', 'You', ' said:'])
  })
})

describe("the client's tool runner", () => {
  const calls: unknown[] = []
  const weather = {
    type: 'function' as const,
    function: {
      name: 'weather',
      description: 'The weather in a city.',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      parse: JSON.parse,
      function: (called: object) => {
        calls.push(called)
        return 'Rain.'
      },
    },
  }

  test.each([true, false])('calls tools until the model answers (stream: %s)', async (stream) => {
    const client = (await startMock()).openai()
    const request = { ...ask('weather city=Oslo'), tools: [weather] }
    const runner = stream
      ? client.chat.completions.runTools({ ...request, stream })
      : client.chat.completions.runTools({ ...request, stream })
    expect(await runner.finalContent()).toBe('The tool answered: Rain.')
    expect(calls.splice(0)).toEqual([{ city: 'Oslo' }])
    expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  })

  test("calls an agent's tools", async () => {
    const app = await startMock()
    const { agent_key } = await app.createAgent('name: A\ninstructions: B\ntools: [weather]\n')
    const request = { ...ask('weather city=Bergen'), tools: [weather], stream: true as const }
    const runner = app.openai(agent_key).chat.completions.runTools(request)
    expect(await runner.finalContent()).toBe('The tool answered: Rain.')
    expect(calls.splice(0)).toEqual([{ city: 'Bergen' }])
  })
})

describe('an error', () => {
  type Failing = [string, new (...args: never[]) => Error, number, string, object]
  test.each<Failing>([
    ['an invalid field', OpenAI.BadRequestError, 400, 'invalid_value', { temperature: 3 }],
    ['a request the backend rejects', OpenAI.BadRequestError, 400, 'mock_error', ask('[[error:422]]')],
    ['an unknown model', OpenAI.NotFoundError, 404, 'model_not_found', { model: 'gone' }],
    ['a rate-limited backend', OpenAI.RateLimitError, 429, 'rate_limit_exceeded', ask('[[error:429]]')],
    ['a failing backend', OpenAI.InternalServerError, 502, 'backend_error', ask('[[error:500]]')],
    ['an unavailable backend', OpenAI.InternalServerError, 503, 'backend_unavailable', ask('[[break:0]]')],
  ])("is thrown as the SDK's error class for its status: %s", async (_what, kind, status, code, change) => {
    const client = (await startMock()).openai()
    for (const stream of [false, true]) {
      const request = client.chat.completions.create({ ...ask('hello'), ...change, stream })
      const failure = await request.then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(failure).toBeInstanceOf(kind)
      expect(failure).toMatchObject({ status, code, requestID: expect.any(String) })
    }
  })

  test("is thrown as the SDK's AuthenticationError if the key is unknown", async () => {
    const client = (await startMock()).openai('svc_nobody')
    const failure = await client.models.list().catch((thrown: unknown) => thrown)
    expect(failure).toBeInstanceOf(OpenAI.AuthenticationError)
    expect(failure).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'authentication_error' })
  })

  test("is thrown as the SDK's PermissionDeniedError if a permission is missing", async () => {
    const app = await startMock()
    const [one, other] = [await app.createAgent(), await app.createAgent()]
    const request = { ...ask('hello'), model: `agent/${other.agent_id}` }
    const failure = await app
      .openai(one.agent_key)
      .chat.completions.create(request)
      .catch((thrown: unknown) => thrown)
    expect(failure).toBeInstanceOf(OpenAI.PermissionDeniedError)
    expect(failure).toMatchObject({ status: 403, code: 'model_not_allowed', param: 'model' })
  })
})

test('the client can list models and agents and retrieve each of them', async () => {
  const app = await startMock()
  const { agent_id } = await app.createAgent()
  const listed: string[] = []
  for await (const model of app.openai().models.list()) {
    expect(await app.openai().models.retrieve(model.id)).toEqual(model)
    listed.push(model.id)
  }
  expect(listed).toEqual(['mock', 'mock-embedding', `agent/${agent_id}`])
})
