/** Tests which chat requests are accepted, and which field the error for an invalid request names. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'

const path = '/v1/chat/completions'
const user = { role: 'user', content: 'hello' }
const calling = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
}
const toolOf = (called: object) => ({ tools: [{ type: 'function', function: { name: 'f', ...called } }] })
const messages = (...list: unknown[]) => ({ messages: list })

describe('a chat request is accepted', () => {
  const nullable = [
    ...[
      'temperature',
      'top_p',
      'frequency_penalty',
      'presence_penalty',
      'max_tokens',
      'max_completion_tokens',
    ],
    ...[
      'n',
      'seed',
      'stop',
      'stream',
      'stream_options',
      'tools',
      'tool_choice',
      'parallel_tool_calls',
      'user',
    ],
    ...[
      'response_format',
      'logprobs',
      'top_logprobs',
      'model',
      'logit_bias',
      'metadata',
      'store',
      'service_tier',
    ],
  ]
  const parts = [{ type: 'text', text: 'hello' }]
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }

  test.each<[string, object]>([
    ...nullable.map((field): [string, object] => [`with null for ${field}`, { [field]: null }]),
    [
      'with the smallest numbers',
      { temperature: 0, top_p: 0, frequency_penalty: -2, presence_penalty: -2, n: 1, max_tokens: 1 },
    ],
    [
      'with the largest numbers',
      { temperature: 2, top_p: 1, frequency_penalty: 2, presence_penalty: 2, n: 128 },
    ],
    ['with one stop sequence', { stop: 'x' }],
    ['with several stop sequences', { stop: ['x', 'y'] }],
    ['with an empty list of stop sequences', { stop: [] }],
    ...['auto', 'none', 'required'].map((choice): [string, object] => [
      `with tool_choice ${choice}`,
      { ...toolOf({}), tool_choice: choice },
    ]),
    ['with a named tool', { ...toolOf({}), tool_choice: { type: 'function', function: { name: 'f' } } }],
    ['with a tool without description or parameters', toolOf({})],
    [
      'with a strict tool',
      toolOf({ strict: true, parameters: { type: 'object', properties: {}, additionalProperties: false } }),
    ],
    [
      'with $schema in a tool',
      toolOf({ parameters: { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' } }),
    ],
    ['with null in a tool', toolOf({ description: null, parameters: null, strict: null })],
    ['with a custom tool', { tools: [{ type: 'custom', custom: { name: 'c' } }] }],
    ['with content parts in a system message', messages({ role: 'system', content: parts }, user)],
    ['with content parts in a developer message', messages({ role: 'developer', content: parts }, user)],
    [
      'with content parts of every type in a user message',
      messages({ ...user, content: [...parts, image, { type: 'x' }] }),
    ],
    [
      'with content parts in an assistant message',
      messages(user, { role: 'assistant', content: parts }, user),
    ],
    [
      'with content parts in a tool message',
      messages(user, calling, { role: 'tool', tool_call_id: 'a', content: parts }),
    ],
    [
      'with null content and tool calls',
      messages(user, calling, { role: 'tool', tool_call_id: 'a', content: 'x' }),
    ],
    [
      'with empty content and tool calls',
      messages(user, { ...calling, content: '' }, { role: 'tool', tool_call_id: 'a', content: '' }),
    ],
    ['with tool calls and no content', messages(user, { ...calling, content: undefined }, user)],
    ...['refusal', 'reasoning_content'].map((field): [string, object] => [
      `with ${field} and no content`,
      messages(user, { role: 'assistant', content: null, [field]: 'x' }, user),
    ]),
    [
      'with an audio response and no content',
      messages(user, { role: 'assistant', audio: { id: 'a' } }, user),
    ],
    ['with null for tool calls', messages(user, { role: 'assistant', content: 'x', tool_calls: null }, user)],
    [
      'with the tool name in a tool message',
      messages(user, calling, { role: 'tool', tool_call_id: 'a', name: 'f', content: 'x' }),
    ],
    ['with a function message', messages(user, { role: 'function', name: 'f', content: 'x' }, user)],
    [
      'with unknown fields in a message',
      messages({ ...user, cache_control: { type: 'ephemeral' }, name: 'Ann' }),
    ],
    [
      'with fields that clients often add',
      { metadata: { a: 'b' }, store: true, service_tier: 'auto', reasoning_effort: 'low', user: 'u' },
    ],
    ['with a JSON response format', { response_format: { type: 'json_object' } }],
    ['with unknown fields', { top_k: 5, provider: { order: ['a'] } }],
  ])('%s', async (_how, change) => {
    const app = await startApp()
    const answer = await app.call('POST', path, { body: { messages: [user], ...change } })
    expect(answer).toMatchObject({ status: 200, body: { object: 'chat.completion' } })
  })
})

describe('a chat request returns 400', () => {
  const tool = (more: object) =>
    messages(user, calling, { role: 'tool', tool_call_id: 'a', content: 'x', ...more })
  const called = (change: object) =>
    messages(user, { ...calling, tool_calls: [{ ...calling.tool_calls[0], ...change }] })

  test.each<[object, string]>([
    [{ messages: undefined }, 'messages'],
    [{ messages: [] }, 'messages'],
    [{ messages: 'hello' }, 'messages'],
    [messages('hello'), 'messages[0]'],
    [messages(null), 'messages[0]'],
    [messages({ content: 'hello' }), 'messages[0].role'],
    [messages({ ...user, role: 'robot' }), 'messages[0].role'],
    [messages({ role: 'user' }), 'messages[0].content'],
    [messages({ ...user, content: null }), 'messages[0].content'],
    [messages({ ...user, content: 7 }), 'messages[0].content'],
    [messages({ ...user, content: ['hello'] }), 'messages[0].content[0]'],
    [messages({ ...user, content: [{ text: 'hello' }] }), 'messages[0].content[0].type'],
    [messages({ ...user, content: [{ type: 'text' }] }), 'messages[0].content[0].text'],
    [messages({ ...user, content: [{ type: 'text', text: 7 }] }), 'messages[0].content[0].text'],
    [messages(user, { role: 'assistant', content: null }), 'messages[1].content'],
    [messages(user, { role: 'assistant' }), 'messages[1].content'],
    [messages(user, { role: 'assistant', content: null, tool_calls: [] }), 'messages[1].content'],
    [messages(user, { role: 'assistant', tool_calls: null, refusal: null }), 'messages[1].content'],
    [tool({ tool_call_id: undefined }), 'messages[2].tool_call_id'],
    [tool({ tool_call_id: 7 }), 'messages[2].tool_call_id'],
    [tool({ content: undefined }), 'messages[2].content'],
    [messages(user, { ...calling, tool_calls: {} }), 'messages[1].tool_calls'],
    [called({ id: undefined }), 'messages[1].tool_calls[0].id'],
    [called({ type: undefined }), 'messages[1].tool_calls[0].type'],
    [called({ function: { arguments: '{}' } }), 'messages[1].tool_calls[0].function.name'],
    [called({ function: { name: 'f', arguments: {} } }), 'messages[1].tool_calls[0].function.arguments'],
    [{ model: '' }, 'model'],
    [{ model: 7 }, 'model'],
    [{ temperature: 3 }, 'temperature'],
    [{ temperature: -0.1 }, 'temperature'],
    [{ temperature: '1' }, 'temperature'],
    [{ top_p: 1.1 }, 'top_p'],
    [{ frequency_penalty: 2.1 }, 'frequency_penalty'],
    [{ presence_penalty: -2.1 }, 'presence_penalty'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ max_tokens: 1.5 }, 'max_tokens'],
    [{ max_tokens: '5' }, 'max_tokens'],
    [{ max_completion_tokens: -1 }, 'max_completion_tokens'],
    [{ n: 0 }, 'n'],
    [{ n: 129 }, 'n'],
    [{ n: 1.5 }, 'n'],
    [{ seed: 'x' }, 'seed'],
    [{ stream: 'false' }, 'stream'],
    [{ stream: 1 }, 'stream'],
    [{ stream: true, stream_options: { include_usage: 'yes' } }, 'stream_options.include_usage'],
    [{ stop: 7 }, 'stop'],
    [{ stop: ['x', 7] }, 'stop[1]'],
    [{ tools: {} }, 'tools'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    [toolOf({ name: 'no spaces' }), 'tools[0].function.name'],
    [toolOf({ name: undefined }), 'tools[0].function.name'],
    [toolOf({ parameters: [] }), 'tools[0].function.parameters'],
    [{ tool_choice: 7 }, 'tool_choice'],
    [{ tool_choice: { type: 'function', function: {} } }, 'tool_choice.function.name'],
    [{ parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
    [{ response_format: 'json' }, 'response_format'],
    [{ logprobs: 1 }, 'logprobs'],
    [{ top_logprobs: 21 }, 'top_logprobs'],
    [{ user: 7 }, 'user'],
  ])('for %j with an error that names %s', async (change, param) => {
    const app = await startApp()
    const answer = await app.call('POST', path, { body: { messages: [user], ...change } })
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { type: 'invalid_request_error', code: 'invalid_value', param } },
    })
    expect(answer.body.error.message.startsWith(`${param}: `)).toBe(true)
  })

  const many = (count: number, item: (index: number) => unknown) =>
    Array.from({ length: count }, (_, index) => item(index))
  test.each<[string, object, string]>([
    ['messages', { messages: many(2049, () => user) }, 'messages'],
    ['tools', { tools: many(129, (index) => toolOf({ name: `f${index}` }).tools[0]) }, 'tools'],
    ['text', messages({ ...user, content: 'x'.repeat(2 * 1024 * 1024 + 1) }), 'messages[0].content'],
    [
      'arguments',
      called({ function: { name: 'f', arguments: 'x'.repeat(256 * 1024 + 1) } }),
      'messages[1].tool_calls[0].function.arguments',
    ],
  ])('when the limit for %s is exceeded', async (_what, change, param) => {
    const app = await startApp()
    const answer = await app.call('POST', path, { body: { messages: [user], ...change } })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_value', param } } })
  })
})
