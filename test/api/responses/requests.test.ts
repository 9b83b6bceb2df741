/** Tests how a Responses API request is converted to a chat request for the provider. */
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { respond, streamResponse } from '../../support/responses.ts'

const harness = await startChatHarness()

// biome-ignore lint/suspicious/noExplicitAny: the shape of the body depends on the test
type Json = any

/** Sends a Responses API request and returns the body of the chat request that the provider receives. */
async function bodyOf(request: object, yaml?: string): Promise<Json> {
  const app = await harness.start()
  const key = yaml === undefined ? app.key : (await app.createAgent(yaml)).agent_key
  const { status, text } = await respond(app, request, key)
  if (status !== 200) throw new Error(text)
  const chats = await harness.listChats()
  expect(chats).toHaveLength(1)
  return chats[0]?.body
}

const messagesOf = async (input: unknown, more: object = {}) => (await bodyOf({ input, ...more })).messages

const user = { role: 'user', content: 'hello' }
const call = (id: string, name = 'f') => ({ type: 'function_call', call_id: id, name, arguments: '{"a":1}' })
const output = (id: string, text: unknown = 'done') => ({
  type: 'function_call_output',
  call_id: id,
  output: text,
})
const toolCall = (id: string, name = 'f') => ({
  id,
  type: 'function',
  function: { name, arguments: '{"a":1}' },
})
const result = (id: string, content: unknown = 'done') => ({ role: 'tool', tool_call_id: id, content })

describe('the input of a Responses API request', () => {
  const said = (text: string) => ({
    type: 'message',
    id: 'msg_1',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
  })
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' }

  test.each<[string, unknown, unknown[]]>([
    ['a text', 'hello', [user]],
    ['an empty text', '', [{ role: 'user', content: '' }]],
    ['a message', [user], [user]],
    ['a message with its type', [{ type: 'message', status: 'completed', ...user }], [user]],
    [
      'messages of every role',
      [
        { role: 'system', content: 'a' },
        { role: 'developer', content: 'b' },
        { role: 'assistant', content: 'c' },
        user,
      ],
      [
        { role: 'system', content: 'a' },
        { role: 'developer', content: 'b' },
        { role: 'assistant', content: 'c' },
        user,
      ],
    ],
    ['a single text part', [{ role: 'user', content: [{ type: 'input_text', text: 'hello' }] }], [user]],
    ['an empty list of parts', [{ role: 'user', content: [] }], [{ role: 'user', content: '' }]],
    [
      'parts of every kind',
      [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low' },
            { type: 'input_image', image_url: 'https://example.org/a.png', detail: null },
            { type: 'input_file', file_data: 'data:text/plain;base64,AA==', filename: 'a.txt' },
            { type: 'input_file', file_id: 'file-1' },
            { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
          ],
        },
      ],
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
            { type: 'image_url', image_url: { url: 'https://example.org/a.png' } },
            { type: 'file', file: { file_data: 'data:text/plain;base64,AA==', filename: 'a.txt' } },
            { type: 'file', file: { file_id: 'file-1' } },
            { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
          ],
        },
      ],
    ],
    [
      'earlier output with a refusal',
      [user, { role: 'assistant', content: [...said('A').content, { type: 'refusal', refusal: 'B' }] }, user],
      [user, { role: 'assistant', content: 'AB' }, user],
    ],
    [
      'the output of an earlier response',
      [user, reasoning, said('Wait.'), call('a'), call('b', 'g'), output('a'), output('b', 'too')],
      [
        user,
        { role: 'assistant', content: 'Wait.', tool_calls: [toolCall('a'), toolCall('b', 'g')] },
        result('a'),
        result('b', 'too'),
      ],
    ],
    [
      'consecutive calls',
      [user, call('a'), output('a'), reasoning, call('b'), output('b'), said('Well.'), user],
      [
        user,
        { role: 'assistant', content: null, tool_calls: [toolCall('a')] },
        result('a'),
        { role: 'assistant', content: null, tool_calls: [toolCall('b')] },
        result('b'),
        { role: 'assistant', content: 'Well.' },
        user,
      ],
    ],
    [
      'text between a call and its output',
      [user, call('a'), said('One '), said('moment.'), output('a')],
      [user, { role: 'assistant', content: 'One moment.', tool_calls: [toolCall('a')] }, result('a')],
    ],
    [
      'two assistant messages',
      [said('A'), said('B'), call('a'), output('a')],
      [
        { role: 'assistant', content: 'A' },
        { role: 'assistant', content: 'B', tool_calls: [toolCall('a')] },
        result('a'),
      ],
    ],
    [
      'an output in parts',
      [
        call('a'),
        output('a', [
          { type: 'input_text', text: 'x' },
          { type: 'input_image', image_url: 'data:,' },
        ]),
      ],
      [
        { role: 'assistant', content: null, tool_calls: [toolCall('a')] },
        result('a', [
          { type: 'text', text: 'x' },
          { type: 'image_url', image_url: { url: 'data:,' } },
        ]),
      ],
    ],
  ])('is converted to chat messages: %s', async (_what, input, messages) => {
    expect(await messagesOf(input)).toEqual(messages)
  })

  test('is placed after the instructions', async () => {
    const system = { role: 'system', content: 'Be brief.' }
    expect(await messagesOf('hello', { instructions: 'Be brief.' })).toEqual([system, user])
  })
})

describe('the fields of a Responses API request', () => {
  const schema = { type: 'object', properties: {} }
  const tool = { type: 'function', name: 'f', description: 'F.', parameters: schema, strict: true }

  test.each<[string, object, object]>([
    ['sampling parameters', { temperature: 0.5, top_p: 0.9 }, { temperature: 0.5, top_p: 0.9 }],
    ['the output limit', { max_output_tokens: 50 }, { max_tokens: 50 }],
    [
      'caller identifiers',
      { user: 'u', safety_identifier: 's', prompt_cache_key: 'k', prompt_cache_retention: '24h' },
      { user: 'u', safety_identifier: 's', prompt_cache_key: 'k', prompt_cache_retention: '24h' },
    ],
    ['the service tier', { service_tier: 'flex' }, { service_tier: 'flex' }],
    [
      'reasoning effort and verbosity',
      { reasoning: { effort: 'low', summary: 'auto' }, text: { verbosity: 'high' } },
      { reasoning_effort: 'low', verbosity: 'high' },
    ],
    ['plain text', { text: { format: { type: 'text' } } }, {}],
    ['JSON', { text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
    [
      'a JSON schema',
      { text: { format: { type: 'json_schema', name: 'n', schema, strict: true } } },
      { response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } } },
    ],
    [
      'tools',
      {
        tools: [tool, { ...tool, description: null, parameters: null, strict: null }],
        parallel_tool_calls: false,
      },
      {
        tools: [
          { type: 'function', function: { name: 'f', description: 'F.', parameters: schema, strict: true } },
          { type: 'function', function: { name: 'f' } },
        ],
        parallel_tool_calls: false,
      },
    ],
    ...['none', 'auto', 'required'].map((choice): [string, object, object] => [
      `the tool choice ${choice}`,
      { tool_choice: choice },
      { tool_choice: choice },
    ]),
    [
      'a named tool',
      { tool_choice: { type: 'function', name: 'f' } },
      { tool_choice: { type: 'function', function: { name: 'f' } } },
    ],
    [
      'a list of allowed tools',
      { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] } },
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
        },
      },
    ],
    ['the number of top logprobs', { top_logprobs: 3 }, { logprobs: true, top_logprobs: 3 }],
    ['logprobs', { include: ['message.output_text.logprobs'] }, { logprobs: true }],
    [
      'fields without a counterpart in chats',
      {
        metadata: { a: 'b' },
        store: true,
        truncation: 'auto',
        include: ['reasoning.encrypted_content'],
        max_tool_calls: 1,
        background: false,
        stream_options: { include_obfuscation: false },
        context_management: [{ type: 'compaction' }],
        n: 5,
        messages: [],
      },
      {},
    ],
  ])('are mapped to chat fields: %s', async (_what, fields, expected) => {
    const { model: _, stream, messages, ...body } = await bodyOf({ input: 'hello', ...fields })
    expect({ stream, messages }).toEqual({ stream: false, messages: [user] })
    expect(body).toEqual(expected)
  })

  test('result in a chat stream with usage if stream is true', async () => {
    await streamResponse(await harness.start(), { input: 'hello' })
    const [chat] = await harness.listChats()
    expect(chat?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } })
  })
})
