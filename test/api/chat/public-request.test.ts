/** Tests that a request with a public agent key cannot control or bill the provider through nested fields. */
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'
const AGENT = 'name: A\ninstructions: B\n'
const hello = { messages: [{ role: 'user', content: 'hello' }] }
const search = {
  type: 'function',
  function: {
    name: 'postMessage_search',
    description: 'Searches.',
    parameters: { type: 'object' },
    strict: true,
  },
}

/** Sends a request with an agent key and returns the response and the body that the provider received. */
async function ask(request: object) {
  const app = await harness.start()
  const { agent_key } = await app.createAgent(AGENT)
  const answer = await app.call('POST', path, { key: agent_key, body: { ...hello, ...request } })
  const [chat] = await harness.listChats()
  // biome-ignore lint/suspicious/noExplicitAny: the shape of the body depends on the test
  return { answer, body: chat?.body as any }
}

const mcp = { type: 'mcp', server_url: 'http://evil.example/mcp', require_approval: 'never' }

describe('a request with an agent key', () => {
  test.each<[what: string, param: RegExp, request: object]>([
    ['an MCP tool', /^tools\[0\]\.type$/, { tools: [{ ...mcp, function: search.function }] }],
    ['a web search tool', /^tools\[1\]\.type$/, { tools: [search, { type: 'web_search' }] }],
    ['a code interpreter', /^tools\[0\]\.type$/, { tools: [{ type: 'code_interpreter', container: {} }] }],
    ['a choice of an MCP tool', /^tool_choice/, { tools: [search], tool_choice: mcp }],
    ['a web search', /^web_search_options$/, { web_search_options: {} }],
    ['more than 8 choices', /^n$/, { n: 9 }],
    [
      'a content part that the chat API does not define',
      /^messages\[0\]\.content\[0\]\.type$/,
      { messages: [{ role: 'user', content: [{ type: 'web_page', url: 'http://evil.example' }] }] },
    ],
    [
      'a call to an MCP tool',
      /^messages\[0\]\.tool_calls\[0\]\.type$/,
      {
        messages: [
          { role: 'assistant', tool_calls: [{ ...mcp, id: 'a', function: { name: 'a', arguments: '{}' } }] },
        ],
      },
    ],
    [
      'a response format that the chat API does not define',
      /^response_format\.type$/,
      { response_format: { type: 'grammar' } },
    ],
  ])('returns 400 if it contains %s', async (_what, param, request) => {
    const { answer, body } = await ask(request)
    expect(answer.status).toBe(400)
    expect(answer.body.error.param).toMatch(param)
    expect(body).toBe(undefined)
  })

  const nested = (levels: number): object =>
    levels === 1 ? { type: 'object' } : { type: 'array', items: nested(levels - 1) }
  const withSchema = (parameters: object) => ({
    tools: [{ type: 'function', function: { name: 'a', parameters } }],
  })

  test.each<[what: string, param: string, request: object]>([
    ['a schema with 17 levels', 'tools[0].function.parameters', withSchema(nested(17))],
    [
      'a remote reference',
      'tools[0].function.parameters.$ref',
      withSchema({ $ref: 'http://evil.example/s.json' }),
    ],
    [
      'an invalid pattern',
      'tools[0].function.parameters.properties.a.pattern',
      withSchema({ properties: { a: { type: 'string', pattern: '(' } } }),
    ],
    ['schemas of more than 64 KiB', 'tools', withSchema({ description: 'a'.repeat(65_536) })],
    ['schemas of more than 2,000 values', 'tools', withSchema({ enum: Array(2_000).fill(1) })],
    [
      'a remote reference in the response schema',
      'response_format.json_schema.schema.items.$ref',
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'a', schema: { items: { $ref: 'http://evil.example' } } },
        },
      },
    ],
  ])('returns 400 if it contains %s', async (_what, param, request) => {
    const { answer, body } = await ask(request)
    expect(answer).toMatchObject({ status: 400, body: { error: { param } } })
    expect(body).toBe(undefined)
  })

  test.each<[what: string, schema: object]>([
    ['16 levels', nested(16)],
    ['a local reference', { $defs: { a: { type: 'string' } }, properties: { a: { $ref: '#/$defs/a' } } }],
    [
      'another dialect',
      { $schema: 'http://json-schema.org/draft-04/schema#', minimum: 1, exclusiveMinimum: true },
    ],
  ])('may contain a tool schema with %s', async (_what, schema) => {
    const { answer, body } = await ask(withSchema(schema))
    expect([answer.status, body.tools[0].function.parameters]).toEqual([200, schema])
  })

  test('is sent to the provider with only the known fields of tools, messages and options', async () => {
    const extra = { server_url: 'http://evil.example', cache_control: { type: 'ephemeral' } }
    const call = { id: 'c', type: 'function', function: { name: 'postMessage_search', arguments: '{}' } }
    const clean = {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'a' }] },
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } }],
        },
        { role: 'assistant', content: null, tool_calls: [call], reasoning_content: 'hm' },
        { role: 'tool', tool_call_id: 'c', content: 'done' },
      ],
      tools: [search],
      tool_choice: { type: 'function', function: { name: 'postMessage_search' } },
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
      stream_options: { include_usage: true },
    }
    /** Adds unknown fields to every object except schemas, because schemas may contain any field. */
    function spoil(value: unknown): unknown {
      if (Array.isArray(value)) return value.map(spoil)
      if (typeof value !== 'object' || value === null) return value
      const entries = Object.entries(value).map(([key, one]) =>
        ['schema', 'parameters'].includes(key) ? [key, one] : [key, spoil(one)],
      )
      return { ...Object.fromEntries(entries), ...extra }
    }
    const request = Object.entries(clean).map(([key, value]) => [key, spoil(value)])
    const { answer, body } = await ask({
      ...Object.fromEntries(request),
      service_tier: 'priority',
      store: true,
    })
    expect(answer.status).toBe(200)
    expect(body).toMatchObject({ ...clean, messages: [{ role: 'system' }, ...clean.messages] })
    expect(JSON.stringify(body)).not.toMatch(/evil|ephemeral|priority|store/)
  })
})

test('unknown nested fields in a request with a parent key are sent to the provider', async () => {
  const app = await harness.start()
  const request = {
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] },
    ],
    tools: [{ type: 'web_search', filters: {} }],
    service_tier: 'priority',
    store: true,
  }
  const answer = await app.call('POST', path, { body: { model: 'up-chat', ...request } })
  expect(answer.status).toBe(200)
  const [chat] = await harness.listChats()
  expect(chat?.body).toMatchObject(request)
})
