/**
 * Tests that oversized request bodies are rejected with little CPU time and that valid large ones are
 * accepted.
 */
import { describe, expect, test } from 'vitest'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'

const CHAT = '/v1/chat/completions'
const RESPONSES = '/v1/responses'
const json = { 'Content-Type': 'application/json' }
/** Maximum CPU time for a response in milliseconds. Unbounded parsing would take many seconds. */
const MOST_CPU_MS = 1_500

const list = (count: number, item: string) => `[${`${item},`.repeat(count - 1)}${item}]`
const record = (count: number) => `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join()}}`
const chat = (fields: string) => `{"model":"mock","messages":[{"role":"user","content":"hello"}],${fields}}`
const say = (content: string) => `{"model":"mock","messages":[{"role":"user","content":${content}}]}`
const calls = (toolCalls: string) =>
  `{"model":"mock","messages":[{"role":"assistant","tool_calls":${toolCalls}}]}`
const choice = (tools: string) =>
  chat(`"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":${tools}}}`)
const respond = (fields: string) => `{"model":"mock","input":"hello",${fields}}`
const given = (content: string) => `{"model":"mock","input":[{"role":"user","content":${content}}]}`

async function callCheaply(app: TestApp, path: string, body: string, key = app.key): Promise<Answer> {
  const before = process.cpuUsage()
  const answer = await app.call('POST', path, { body, headers: json, key })
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(MOST_CPU_MS)
  return answer
}

const huge: Readonly<Record<string, readonly [path: string, makeBody: () => string]>> = {
  '6,600,000 empty content parts': [CHAT, () => say(list(6_600_000, '{}'))],
  '9,000,000 numbers in content': [CHAT, () => say(list(9_000_000, '1'))],
  '6,000,000 empty lists in metadata': [CHAT, () => chat(`"metadata":${list(6_000_000, '[]')}`)],
  '500,000 empty tool_calls': [CHAT, () => calls(list(500_000, '{}'))],
  '1,000,000 numbers in stop': [CHAT, () => chat(`"stop":${list(1_000_000, '1')}`)],
  '500,000 empty allowed tools': [CHAT, () => choice(list(500_000, '{}'))],
  '500,000 empty input parts': [RESPONSES, () => given(list(500_000, '{}'))],
  '1,000,000 numbers in include': [RESPONSES, () => respond(`"include":${list(1_000_000, '1')}`)],
  '500,000 metadata keys': [RESPONSES, () => respond(`"metadata":${record(500_000)}`)],
}

test.each(Object.entries(huge))('the server rejects %s with little CPU time', async (_, [path, makeBody]) => {
  const app = await startApp()
  const { agent_key: agentKey } = await app.createAgent()
  const body = makeBody()
  const refused = await callCheaply(app, path, body)
  expect(refused).toMatchObject({ status: 400, body: { error: { type: 'invalid_request_error' } } })
  expect(refused.body.error.message).toMatch(/more than 50000 values/)
  const status = body.length > 2 * 1024 * 1024 ? 413 : 400
  expect(await callCheaply(app, path, body, agentKey)).toMatchObject({ status })
})

/** Slightly below the limit of 50,000 JSON values in a body; an empty object counts as two values. */
const MANY = 45_000
const MANY_EMPTY = MANY / 2

const junk: Readonly<Record<string, readonly [path: string, param: string, body: string]>> = {
  'content parts': [CHAT, 'messages[0].content', say(list(MANY_EMPTY, '{}'))],
  'numbers in content': [CHAT, 'messages[0].content', say(list(MANY, '1'))],
  tool_calls: [CHAT, 'messages[0].tool_calls', calls(list(MANY_EMPTY, '{}'))],
  'stop sequences': [CHAT, 'stop', chat(`"stop":${list(MANY, '1')}`)],
  'allowed tools': [CHAT, 'tool_choice.allowed_tools.tools', choice(list(MANY_EMPTY, '{}'))],
  'input parts': [RESPONSES, 'input[0].content', given(list(MANY_EMPTY, '{}'))],
  'include values': [RESPONSES, 'include', respond(`"include":${list(MANY, '1')}`)],
  'metadata keys': [RESPONSES, 'metadata', respond(`"metadata":${record(MANY)}`)],
}

test.each(Object.entries(junk))(
  'the error for too many %s names the field',
  async (_, [path, param, body]) => {
    const app = await startApp()
    expect(await callCheaply(app, path, body)).toMatchObject({ status: 400, body: { error: { param } } })
  },
)

test('the server rejects invalid values in many messages with little CPU time', async () => {
  const app = await startApp()
  const messages = list(2_000, `{"role":"user","content":${list(22, '{}')}}`)
  const { status } = await callCheaply(app, CHAT, `{"model":"mock","messages":${messages}}`)
  expect(status).toBe(400)
})

test('the server rejects 450,000 invalid embeddings tokens with little CPU time', async () => {
  const app = await startApp()
  for (const tokens of [list(450_000, '"x"'), list(20, list(22_000, 'null')), list(20, list(22_000, '""'))]) {
    const body = `{"model":"mock-embedding","input":[${tokens}]}`
    expect(await callCheaply(app, '/v1/embeddings', body)).toMatchObject({ status: 400 })
  }
})

test('the server accepts embeddings inputs of 2,048 token arrays and of 524,288 tokens', async () => {
  const app = await startApp()
  for (const [count, length] of [
    [2_048, 256],
    [64, 8_192],
  ] as const) {
    const input = list(count, list(length, '1'))
    const body = `{"model":"mock-embedding","encoding_format":"base64","input":${input}}`
    const answer = await app.call('POST', '/v1/embeddings', { body, headers: json })
    expect([answer.status, answer.body.data?.length]).toEqual([200, count])
  }
})

describe("an agent key's body limit", () => {
  const fill = (start: string, end: string, bytes: number) =>
    start + 'a'.repeat(bytes - start.length - end.length) + end
  const chatOf = (bytes: number) => fill('{"messages":[{"role":"user","content":"', '"}]}', bytes)
  /** Returns a tRPC call that is rejected with 403 because the key belongs to another agent. */
  const callOf = (bytes: number) =>
    fill('{"json":{"model":"agent/other","messages":[{"role":"user","content":"', '"}]}}', bytes)
  const limits: [string, Record<string, string>, number][] = [
    ['2 MiB by default', {}, 2_097_152],
    ['the configured limit', { PARLEY_MAX_BODY_BYTES_AGENT: '65536' }, 65_536],
    [
      'the limit of parent keys if that is smaller',
      { PARLEY_MAX_BODY_BYTES: '65536', PARLEY_MAX_BODY_BYTES_AGENT: '131072' },
      65_536,
    ],
  ]

  test.each(limits)('is %s', async (_, env, bytes) => {
    const app = await startApp(env)
    const { agent_key: key } = await app.createAgent()
    const options = { key, headers: json }
    const error = { type: 'invalid_request_error', code: 'too_large' }
    expect(await app.call('POST', CHAT, { ...options, body: chatOf(bytes) })).toMatchObject({ status: 200 })
    const refused = await app.call('POST', CHAT, { ...options, body: chatOf(bytes + 1) })
    expect(refused).toMatchObject({ status: 413, body: { error } })
    expect(refused.body.error.message).toContain(`${bytes} bytes`)
    const typed = '/trpc/chat.stream'
    expect((await app.call('POST', typed, { ...options, body: callOf(bytes) })).status).toBe(403)
    expect(await app.call('POST', typed, { ...options, body: callOf(bytes + 1) })).toMatchObject({
      status: 413,
      body: { error: { json: { data: { reason: 'too_large' } } } },
    })
  })

  test("is lower than a parent key's limit by default", async () => {
    const app = await startApp()
    const body = respond(
      `"instructions":"${'a'.repeat(1_000_000)}","metadata":{},"x":"${'a'.repeat(2_000_000)}"`,
    )
    expect((await app.call('POST', RESPONSES, { body, headers: json })).status).toBe(200)
    const { agent_key: key } = await app.createAgent()
    expect((await app.call('POST', RESPONSES, { body, headers: json, key })).status).toBe(413)
  })
})

test('the limit on JSON values in a body also applies to tRPC calls', async () => {
  const app = await startApp()
  const { agent_key: agentKey } = await app.createAgent()
  for (const key of [app.key, agentKey]) {
    const body = `{"json":${say(list(600_000, '{}'))}}`
    const refused = await callCheaply(app, '/trpc/chat.stream', body, key)
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { json: { data: { reason: 'invalid_value' } } } },
    })
    expect(refused.text).toContain('more than 50000 values')
  }
  const tokens = `{"json":{"model":"mock-embedding","input":${list(200, list(500, '1'))}}}`
  expect((await callCheaply(app, '/trpc/embeddings.create', tokens)).status).toBe(200)
})

test('the limit on JSON values in a body does not apply to text inside strings', async () => {
  const app = await startApp()
  const content = JSON.stringify('[{"a":1},\\"'.repeat(150_000))
  expect((await callCheaply(app, CHAT, say(content))).status).toBe(200)
})

test('the server accepts a body with many messages, parts and tools', async () => {
  const app = await startApp()
  const part = `{"type":"text","text":"hello"}`
  const messages = list(2_000, `{"role":"user","content":[${part},${part}]}`)
  const properties = `{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}}`
  const tool = `{"type":"function","function":{"name":"t","parameters":{"type":"object","properties":${properties}}}}`
  const body = `{"model":"mock","messages":${messages},"tools":${list(128, tool)}}`
  expect((await app.call('POST', CHAT, { body, headers: json })).status).toBe(200)
})
