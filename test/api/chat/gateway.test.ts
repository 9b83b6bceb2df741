/** Tests that chat requests and responses pass through the service with as few changes as possible. */
import { describe, expect, test } from 'vitest'
import { ChatCompletion } from '../../../src/providers/chat-api.ts'
import { chatRequest, PROVIDER_KEY, startChatHarness } from '../../support/chat-harness.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'
const counted = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }

/** A request with every field of the chat API and some unknown fields. */
const everything = {
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'Be brief.' }], name: 'boss' },
    { role: 'developer', content: 'Really.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
        { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
        { type: 'file', file: { file_id: 'file-1' } },
        { type: 'hologram', hologram: { depth: 3 } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      reasoning_content: 'hm',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' }, extra: true }],
    },
    { role: 'tool', tool_call_id: 'a', name: 'f', content: [{ type: 'text', text: 'one' }] },
    { role: 'user', content: 'héllo 🎈' },
  ],
  temperature: null,
  top_p: 0.25,
  frequency_penalty: -2,
  presence_penalty: 2,
  max_tokens: 7,
  max_completion_tokens: 8,
  n: 2,
  seed: -7,
  stop: ['a', 'b'],
  user: 'someone',
  logprobs: true,
  top_logprobs: 20,
  logit_bias: { 50256: -100 },
  metadata: { trace: 'x' },
  store: false,
  service_tier: 'flex',
  reasoning_effort: 'low',
  modalities: ['text'],
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'a', strict: true, schema: { type: 'object' } },
  },
  tools: [
    { type: 'function', function: { name: 'f', strict: true, parameters: { $schema: 'x', type: 'object' } } },
  ],
  tool_choice: {
    type: 'allowed_tools',
    allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
  },
  parallel_tool_calls: false,
  top_k: 40,
  chat_template_kwargs: { thinking: { budget: 1 } },
}

describe('a request with a parent key is sent to the backend', () => {
  test('with every field unchanged, except that the model loses its provider prefix', async () => {
    const app = await harness.start()
    const { status } = await app.call('POST', path, { body: { ...everything, model: 'gateway/up-chat' } })
    const [chat] = await harness.listChats()
    expect(status).toBe(200)
    expect(chat?.body).toEqual({ ...everything, model: 'up-chat', stream: false })
  })

  test('with only include_usage changed if it is streamed', async () => {
    const app = await harness.start()
    const stream_options = { include_usage: false, include_obfuscation: false }
    await app.stream({ ...everything, model: 'up-chat', stream_options })
    const [chat] = await harness.listChats()
    expect(chat?.body).toEqual({
      ...everything,
      model: 'up-chat',
      stream: true,
      stream_options: { ...stream_options, include_usage: true },
    })
  })

  test("with the provider's key and without the caller's headers", async () => {
    const app = await harness.start()
    const headers = {
      'X-Api-Key': 'x',
      Cookie: 'session=1',
      'OpenAI-Organization': 'org',
      'User-Agent': 'curious',
      'X-Forwarded-For': '10.0.0.1',
    }
    await app.call('POST', path, { body: chatRequest('hello'), headers })
    const [chat] = await harness.listChats()
    expect(chat?.headers.authorization).toBe(`Bearer ${PROVIDER_KEY}`)
    const names = Object.keys(chat?.headers ?? {}).sort()
    expect(names).toEqual([
      'accept',
      'accept-encoding',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
      'user-agent',
    ])
    expect(JSON.stringify(chat)).not.toMatch(/curious|svc_/)
  })
})

describe('a response from the backend is returned', () => {
  test('byte for byte', async () => {
    const app = await harness.start()
    const answer = await app.call('POST', path, {
      body: chatRequest('hello 🎈 {{up:reasoning let me see}}{{up:python}}'),
    })
    const [chat] = await harness.listChats()
    expect(answer.text).toBe(await harness.readDirectly(chat?.body))
    expect(answer.headers.get('x-parley-provider')).toBe('gateway')
    expect(answer.headers.get('x-parley-attempts')).toBe('1')
  })

  test('with defaults for required fields that the backend omits', async () => {
    const app = await harness.start()
    const call = { function: { name: 'f', arguments: { x: 1 } } }
    await harness.answerWith({
      choices: [{ message: { tool_calls: [call] } }, { message: { content: 'a', tool_calls: null } }],
    })
    const { body } = await app.call('POST', path, { body: chatRequest('hello') })
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl-\w{24}$/),
      object: 'chat.completion',
      created: 1_800_000_000,
      model: 'up-chat',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                id: expect.stringMatching(/^call_\w{24}$/),
                type: 'function',
                function: { name: 'f', arguments: '{"x":1}' },
              },
            ],
          },
          finish_reason: 'tool_calls',
        },
        { index: 1, message: { role: 'assistant', content: 'a' }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    })
  })

  test.each([
    ['no usage', undefined, { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ['null as usage', null, { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    [
      'no total',
      { prompt_tokens: 3, completion_tokens: 4, cost: 1 },
      { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, cost: 1 },
    ],
    [
      'counts that are not whole numbers',
      { prompt_tokens: 1.5, completion_tokens: '7', total_tokens: null, cost: 0.5 },
      { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0.5 },
    ],
    [
      'counts above the largest exact integer',
      { prompt_tokens: 1e308, completion_tokens: 4, total_tokens: 2 ** 53 },
      { prompt_tokens: 0, completion_tokens: 4, total_tokens: 4 },
    ],
    [
      'negative counts',
      { prompt_tokens: -1, completion_tokens: 4, total_tokens: -2 },
      { prompt_tokens: 0, completion_tokens: 4, total_tokens: 4 },
    ],
    [
      'details that are not whole numbers',
      { ...counted, prompt_tokens_details: { cached_tokens: 1.5, audio_tokens: 2 }, reasoning_tokens: '1' },
      { ...counted, prompt_tokens_details: { audio_tokens: 2 } },
    ],
  ])('with complete usage if the backend sends %s', async (_what, sent, usage) => {
    const app = await harness.start()
    await harness.answerWith({ choices: [{ message: { content: 'a' } }], usage: sent })
    expect((await app.call('POST', path, { body: chatRequest('hello') })).body.usage).toEqual(usage)
    const whole = { id: 'a', object: 'chat.completion', created: 1, model: 'm', usage: sent }
    const choice = { index: 0, finish_reason: 'stop' }
    await harness.answerWith({
      ...whole,
      choices: [{ ...choice, message: { role: 'assistant', content: 'a' } }],
    })
    expect((await app.call('POST', path, { body: chatRequest('hello') })).body.usage).toEqual(usage)
    await harness.answerWith([{ ...whole, choices: [{ ...choice, delta: { content: 'a' } }] }])
    const streamed = await app.stream(chatRequest('hello', { stream_options: { include_usage: true } }))
    expect(streamed.events.at(-1).usage).toEqual(usage)
  })

  test('with field types corrected to those that the API defines', async () => {
    const app = await harness.start()
    const call = { id: 7, type: 7, function: { name: 7, arguments: { x: 1 } } }
    const message = { role: 'model', content: 'a', tool_calls: [call] }
    const choices = [{ index: '0', message, finish_reason: 7 }]
    await harness.answerWith({
      id: 7,
      object: 'text_completion',
      created: 1.5,
      model: 7,
      choices,
      usage: counted,
    })
    const { body } = await app.call('POST', path, { body: chatRequest('hello') })
    expect(ChatCompletion.parse(body)).toMatchObject({ choices: [{ index: 0, finish_reason: 'tool_calls' }] })
  })
})
