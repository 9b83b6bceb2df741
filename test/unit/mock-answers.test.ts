/**
 * Tests the mock backend's echo of the last user message, the request options that change it, and which
 * requests are too large.
 */
import { describe, expect, test } from 'vitest'
import { neverAborted } from '../support/backend.ts'
import {
  type Body,
  backend,
  chatRequest,
  clock,
  complete,
  createMockProvider,
  firstChoiceOf,
  joinChoice,
  parseChunks,
  streamChunks,
  streamText,
  textOf,
  tool,
} from '../support/mock.ts'

describe('an echo response of the mock backend', () => {
  test('repeats the text of the last user message', async () => {
    expect(
      await complete(chatRequest('Hello there', { model: 'mock-9' }), createMockProvider().backend),
    ).toEqual({
      id: 'chatcmpl-id1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'mock-9',
      system_fingerprint: expect.any(String),
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'You said: Hello there', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    })
  })

  test('is streamed as the role, one word per event, the finish reason and [DONE]', async () => {
    const text = await streamText(
      chatRequest('Hello  🌍 wörld\n', { model: 'm' }),
      createMockProvider().backend,
    )
    const same = { id: 'chatcmpl-id1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm' }
    const chunk = (delta: object, finish_reason: string | null = null) =>
      expect.objectContaining({ ...same, choices: [{ index: 0, delta, finish_reason }] })
    expect(text.endsWith('}\n\ndata: [DONE]\n\n')).toBe(true)
    expect(parseChunks(text)).toEqual([
      chunk({ role: 'assistant', content: '' }),
      ...['You', ' said:', ' Hello', '  🌍', ' wörld', '\n'].map((content) => chunk({ content })),
      chunk({}, 'stop'),
    ])
  })

  test('repeats the text parts of the last user message, regardless of later messages', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:,' } }
    const parts = [{ type: 'text', text: 'What is' }, image, { type: 'text', text: 'this?' }]
    const messages = [
      { role: 'user', content: 'first' },
      { role: 'user', content: parts },
      { role: 'assistant', content: 'Let me see' },
    ]
    expect(await textOf({ messages })).toBe('You said: What is this?')
    expect((await complete({ messages })).model).toBe('mock')
  })

  test('is deterministic with a seed, including its ids', async () => {
    const body = chatRequest('use get_time', { seed: 7, tools: [clock] })
    const first = await complete(body)
    expect(await complete(body)).toEqual(first)
    expect((await complete({ ...body, seed: 8 })).id).not.toBe(first.id)
    expect((await complete(chatRequest('hi'))).id).not.toBe((await complete(chatRequest('hi'))).id)
  })

  test.each([
    ['no messages', {}],
    ['empty messages', { messages: [{}] }],
    ['null content', chatRequest(null)],
    ['unexpected parts', chatRequest([null, 4, { type: 'text', text: 5 }])],
    [
      'nulls for numbers',
      chatRequest('', { n: null, max_tokens: null, seed: null, top_logprobs: null, stop: null }),
    ],
    [
      'unexpected tools',
      chatRequest('', { tools: [null, {}, { function: null }, tool('')], tool_choice: 'required' }),
    ],
    [
      'unexpected formats',
      chatRequest('', { response_format: null, stream_options: null, tool_choice: { type: 'x' } }),
    ],
  ])('echoes no text but is valid for %s', async (_, body) => {
    expect(await firstChoiceOf(body)).toMatchObject({
      message: { content: 'You said: ' },
      finish_reason: 'stop',
    })
  })
})

describe('in a request to the mock backend', () => {
  test('n determines the number of choices, all of which are complete in a stream', async () => {
    const body = chatRequest('get_time', { n: 3, tools: [clock] })
    const { choices } = await complete(body)
    expect(choices.map((choice) => choice.index)).toEqual([0, 1, 2])
    const chunks = await streamChunks(body)
    const joined = [0, 1, 2].map((index) => joinChoice(chunks, index))
    expect(joined.map(({ finish }) => finish)).toEqual(['tool_calls', 'tool_calls', 'tool_calls'])
    expect(new Set(joined.flatMap(({ calls }) => calls.map((call) => call.id))).size).toBe(3)
  })

  test.each([
    [{ stop: 'two' }, 'You said: one ', 'stop'],
    [{ stop: ['x', 'three', 'two'] }, 'You said: one ', 'stop'],
    [{ stop: ['', 'absent'] }, 'You said: one two three', 'stop'],
    [{ max_tokens: 3 }, 'You said: one', 'length'],
    [{ max_completion_tokens: 2, max_tokens: 9 }, 'You said:', 'length'],
    [{ max_tokens: 5 }, 'You said: one two three', 'stop'],
    [{ max_tokens: 3, stop: 'said' }, 'You ', 'stop'],
  ])('%j produces the text %j and the finish reason %s', async (more, content, finish_reason) => {
    expect(await firstChoiceOf(chatRequest('one two three', more))).toMatchObject({
      message: { content },
      finish_reason,
    })
  })

  test('include_usage adds a last chunk with the usage of a complete response and no choices', async () => {
    const body = chatRequest('use get_time', {
      tools: [clock],
      n: 2,
      stream_options: { include_usage: true },
    })
    const chunks = await streamChunks(body)
    const { usage } = await complete(body)
    expect(chunks.filter((chunk) => 'usage' in chunk)).toEqual([chunks.at(-1)])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage })
    expect(usage).toEqual({ prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 })
    const unasked = await streamChunks(chatRequest('hi', { stream_options: { include_usage: false } }))
    expect(unasked.some((chunk) => 'usage' in chunk || chunk.choices.length === 0)).toBe(false)
  })

  test('logprobs returns every token of the text with its bytes and the requested number of alternatives', async () => {
    const body = chatRequest('né 🎉', { logprobs: true, top_logprobs: 2 })
    const { logprobs, message } = await firstChoiceOf(body)
    const tokens = logprobs?.content ?? []
    expect(tokens.map(({ token }) => token).join('')).toBe(message.content)
    expect(Buffer.from(tokens.flatMap(({ bytes }) => bytes ?? [])).toString()).toBe(message.content)
    expect(tokens.every(({ logprob, top_logprobs }) => logprob < 0 && top_logprobs.length === 2)).toBe(true)
    const streamed = (await streamChunks(body)).flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? [])
    expect(streamed).toEqual(tokens)
  })
})

test('the mock backend lists a chat model and an embedding model', async () => {
  expect(backend.name).toBe('mock')
  expect(await backend.listModels(neverAborted)).toEqual([
    { id: 'mock', created: expect.any(Number), ownedBy: 'parley', chats: true },
    { id: 'mock-embedding', created: expect.any(Number), ownedBy: 'parley', chats: false },
  ])
  await backend.close()
})

describe('a request to the mock backend', () => {
  const args = JSON.stringify({ text: 'a'.repeat(200_000) })
  test.each<[what: string, body: Body]>([
    [
      'log probabilities of many choices',
      chatRequest('[[tokens:3000]]', { n: 128, logprobs: true, top_logprobs: 20 }),
    ],
    [
      'log probabilities of many tokens',
      chatRequest('[[tokens:100000]]', { logprobs: true, top_logprobs: 20 }),
    ],
    ['many choices of many tokens', chatRequest('[[tokens:100000]]', { n: 128 })],
    ['log probabilities of a long word', chatRequest('a'.repeat(2_000_000), { logprobs: true })],
    ['many choices of long tool calls', chatRequest(`[[tool:a ${args}]]`, { n: 128 })],
  ])('is rejected with 400 if the response would be far larger than the request: %s', async (_what, body) => {
    const failure = { kind: 'status', status: 400 }
    await expect(complete(body)).rejects.toMatchObject(failure)
    await expect(backend.stream({ body, signal: neverAborted })).rejects.toMatchObject(failure)
  })

  test.each<[what: string, body: Body]>([
    ['many tokens', chatRequest('[[tokens:100000]]')],
    ['many choices', chatRequest('[[tokens:100]]', { n: 128 })],
    ['log probabilities', chatRequest('[[tokens:1000]]', { logprobs: true, top_logprobs: 20 })],
  ])('is accepted if it asks for only %s', async (_what, body) => {
    expect((await complete(body)).choices.length).toBeGreaterThan(0)
  })
})
