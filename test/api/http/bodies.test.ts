/** Tests which JSON request bodies and media types the APIs accept. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'

const CHAT = '/v1/chat/completions'
const json = { 'Content-Type': 'application/json' }
const hello = '{"model":"mock","messages":[{"role":"user","content":"hello"}]}'
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
/** Returns a chat request whose metadata is nested to this depth. */
const chatOfDepth = (depth: number) => hello.replace('{', `{"metadata":${nested(depth - 1)},`)

describe('an invalid JSON body', () => {
  const bodies: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>> = {
    'broken JSON': '{"yaml": ',
    'text after the JSON': '{} {}',
    'single quotes': "{'yaml': 1}",
    'NaN as a number': '{"temperature": NaN}',
    'a list': '[1,2]',
    'a bare string': '"yaml"',
    null: 'null',
    '200,000 nested arrays': nested(200_000),
    '200,000 nested objects': '{"a":'.repeat(200_000),
    'arrays 65 levels deep': nested(65),
    'invalid UTF-8': new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
    'UTF-16': new Uint8Array(Buffer.from('{"yaml":"x"}', 'utf16le')),
  }
  const cases = Object.entries(bodies).map(([name, body]) => ({ name, body }))

  test.each(cases)('is rejected with 400 ($name)', async ({ body }) => {
    const app = await startApp()
    const headers = { ...json, Authorization: `Bearer ${app.key}` }
    for (const path of ['/v1/agents', CHAT]) {
      const answer = await app.fetch(app.url + path, { method: 'POST', headers, body })
      expect(answer.status).toBe(400)
      const { error } = await answer.json()
      expect(path === CHAT ? error.message : error).toEqual(expect.any(String))
    }
    const rpc = await fetch(`${app.url}/trpc/agents.create`, { method: 'POST', headers, body })
    expect(rpc.status).toBe(400)
    expect((await rpc.json()).error.json.data.reason).toBe('invalid_value')
    expect((await app.call('GET', '/v1/agents')).body.data).toEqual([])
  })
})

test.each(['"__proto__"', '"\\u005f_pr\\u006fto__"'])(
  'a JSON body with the key %s at any depth is rejected',
  async (key) => {
    const app = await startApp()
    const yaml = '"yaml":"name: A\\ninstructions: B"'
    for (const member of [`${key}:{"admin":true}`, `"metadata":[{"x":{${key}:1}}]`]) {
      const [chat, agent] = [hello, `{${yaml}}`].map((body) => body.replace('{', `{${member},`))
      const refused = [
        await app.call('POST', CHAT, { body: chat, headers: json }),
        await app.call('POST', '/v1/agents', { body: agent, headers: json }),
        await app.call('POST', '/trpc/agents.create', { body: `{"json":${agent}}`, headers: json }),
      ]
      for (const { status, text } of refused) {
        expect(status).toBe(400)
        expect(text).toContain('__proto__')
      }
    }
  },
)

test('a JSON body may be nested 64 levels deep but not 65', async () => {
  const app = await startApp()
  expect((await app.call('POST', CHAT, { body: chatOfDepth(64), headers: json })).status).toBe(200)
  const refused = await app.call('POST', CHAT, { body: chatOfDepth(65), headers: json })
  expect(refused).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining('64') } } })
})

test('brackets inside strings of a JSON body are not treated as nesting', async () => {
  const app = await startApp()
  const content = `${'[{'.repeat(1000)} \\" ${'[{'.repeat(1000)}`
  const body = { model: 'mock', messages: [{ role: 'user', content }] }
  const answer = await app.call('POST', CHAT, { body })
  expect(answer.body.choices[0].message.content).toBe(`You said: ${content}`)
})

describe("a JSON body's media type", () => {
  const accepted = ['application/json', 'Application/JSON; charset=UTF-8', 'application/json;charset=utf-8']
  test.each(accepted)('may be %s', async (mediaType) => {
    const app = await startApp()
    const headers = { 'Content-Type': mediaType }
    expect((await app.call('POST', CHAT, { body: hello, headers })).status).toBe(200)
    const body = '{"json":{"yaml":"name: A\\ninstructions: B"}}'
    expect((await app.call('POST', '/trpc/agents.create', { body, headers })).status).toBe(200)
  })

  const refused = [
    'text/plain',
    'text/json',
    'multipart/form-data; boundary=x',
    'application/yaml',
    'nonsense',
  ]
  test.each(refused)('is rejected with 415 if it is %s', async (mediaType) => {
    const app = await startApp()
    const answer = await app.call('POST', CHAT, { body: hello, headers: { 'Content-Type': mediaType } })
    expect(answer).toMatchObject({ status: 415, body: { error: { code: 'unsupported_media_type' } } })
    expect(answer.body.error.message).toContain('application/json')
    const rpc = await app.call('POST', '/trpc/agents.create', {
      body: hello,
      headers: { 'Content-Type': mediaType },
    })
    expect(rpc).toMatchObject({
      status: 415,
      body: { error: { json: { data: { reason: 'unsupported_media_type' } } } },
    })
  })

  test('is required: a request without it returns 415', async () => {
    const app = await startApp()
    const body = new Blob([hello])
    const headers = { Authorization: `Bearer ${app.key}` }
    expect((await app.fetch(app.url + CHAT, { method: 'POST', body, headers })).status).toBe(415)
  })

  test.each(['gzip', 'br', 'deflate', 'GZIP', 'zstd'])(
    'is rejected with 415 in combination with Content-Encoding: %s',
    async (encoding) => {
      const app = await startApp()
      const headers = { ...json, 'Content-Encoding': encoding }
      expect((await app.call('POST', CHAT, { body: hello, headers })).status).toBe(415)
      expect((await app.call('POST', '/trpc/agents.create', { body: hello, headers })).status).toBe(415)
    },
  )
})

describe('a request without a body', () => {
  test('returns 400 to POST and PUT if a field is required', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    for (const headers of [{}, json]) {
      expect(await app.call('POST', CHAT, { headers })).toMatchObject({
        status: 400,
        body: { error: { param: 'messages' } },
      })
      expect(await app.call('POST', '/v1/agents', { headers })).toMatchObject({ status: 400 })
      expect(await app.call('PUT', `/v1/agents/${id}`, { headers })).toMatchObject({ status: 400 })
    }
  })

  test('succeeds with POST if every field is optional', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    expect((await app.call('POST', `/v1/agents/${id}/rotate-key`)).status).toBe(200)
  })

  test('succeeds with DELETE despite a JSON content type', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    expect((await app.call('DELETE', `/v1/agents/${id}`, { headers: json })).status).toBe(200)
  })
})
