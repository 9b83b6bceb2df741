/** Tests the rate limits on requests with parent keys and agent keys. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { callProcedure, createTypedClient } from '../../support/rpc.ts'

const hello = { model: 'mock', messages: [{ role: 'user', content: 'hello' }] }
const limitsOf = ({ headers }: Pick<Answer, 'headers'>) =>
  ['limit', 'remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}`))
const none = [null, null, null]

async function start(env: Readonly<Record<string, string>>) {
  const clock = createFakeClock()
  const app = await startApp(env, { clock })
  return { app, clock, now: clock.now() / 1000 }
}

const from = (address: string) => ({ 'X-Forwarded-For': address })
const behindProxy = { PARLEY_TRUSTED_PROXIES: '127.0.0.1/32' }
const list = (app: TestApp, address: string, key: string | null = app.key) =>
  app.call('GET', '/v1/models', { key, headers: from(address) })

describe('a large body', () => {
  const yaml = 'name: A\ninstructions: B\n'
  const padded = (size: number) => `${yaml}#${'x'.repeat(size - yaml.length - 2)}\n`
  const say = (content: string, more: object = {}) => ({
    model: 'mock',
    messages: [{ role: 'user', content }],
    ...more,
  })
  const metadata = (count: number) => ({ metadata: Array.from({ length: count }, () => 1) })
  const left = ({ headers }: Answer) => Number(headers.get('x-ratelimit-remaining'))
  const chat = '/v1/chat/completions'

  test.each<[what: string, requests: number, path: string, body: unknown, type?: string]>([
    ['a chat of 200 KiB', 1, chat, say('a'.repeat(200 * 1024))],
    ['a chat of 1 MiB', 5, chat, say('a'.repeat(1024 * 1024))],
    ['a chat with 4,000 values', 1, chat, say('a', metadata(4_000))],
    ['a chat with 22,000 values', 5, chat, say('a', metadata(22_000))],
    ['a rejected body of 49,000 values', 10, chat, metadata(49_000)],
    [
      'an embeddings request of 50,000 tokens',
      1,
      '/v1/embeddings',
      { model: 'mock-embedding', input: Array(50_000).fill(1) },
    ],
    ['a definition of 10 KiB', 1, '/v1/agents', padded(10 * 1024), 'application/yaml'],
    ['a definition of 100 KiB', 7, '/v1/agents', padded(100 * 1024), 'application/yaml'],
    ['a definition of 100 KiB in JSON', 7, '/v1/agents', { yaml: padded(100 * 1024) }],
  ])(
    'counts as several requests, depending on its size and number of values: %s as %i',
    async (_what, requests, path, body, type = 'application/json') => {
      const { app } = await start({})
      const answer = await app.call('POST', path, { body, headers: { 'Content-Type': type } })
      expect(answer.status).not.toBe(429)
      expect(left(answer)).toBe(600 - requests)
    },
  )

  test('counts the same over tRPC, including the whole body of a batch', async () => {
    const { app } = await start({})
    const large = await callProcedure(app, 'agents.check', { yaml: padded(100 * 1024) })
    expect([large.status, left(large)]).toEqual([200, 600 - 7])
    const inputs = { 0: { json: { yaml: padded(40 * 1024) } }, 1: { json: { yaml: padded(40 * 1024) } } }
    const batch = await app.call('POST', '/trpc/agents.check,agents.check?batch=1', { body: inputs })
    expect([batch.status, left(await app.call('GET', '/v1/models'))]).toEqual([200, 600 - 7 - 7 - 1])
  })

  test('counts by its size if it is an agent draft', async () => {
    const { app } = await start({})
    const trial = { draft: { yaml: padded(100 * 1024) } }
    const messages = [{ role: 'user' as const, content: 'hello' }]
    await createTypedClient(app).chat.stream.mutate({ messages, trial })
    expect(left(await app.call('GET', '/v1/models'))).toBe(600 - 7 - 1)
  })

  test('is rejected before it is parsed if too few requests remain in the window', async () => {
    const { app, clock } = await start({ PARLEY_RATE_LIMIT_PARENT: '6' })
    await app.call('GET', '/v1/models')
    await app.call('GET', '/v1/models')
    const body = `${JSON.stringify(say('a'.repeat(1024 * 1024)))} is not JSON`
    const refused = await app.call('POST', chat, { body, headers: { 'Content-Type': 'application/json' } })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    expect(limitsOf(refused).slice(0, 2)).toEqual(['6', '0'])
    clock.advance(60)
    expect((await app.call('POST', chat, { body: say('a'.repeat(1024 * 1024)) })).status).toBe(200)
  })

  test('is accepted, but only as the first request in a window, if its cost exceeds the limit', async () => {
    const { app, clock } = await start({ PARLEY_RATE_LIMIT_AGENT_ADDRESS: '3' })
    const { agent_key: key } = await app.createAgent()
    const send = async () =>
      (await app.call('POST', chat, { key, body: say('a'.repeat(1024 * 1024)) })).status
    expect([await send(), await send()]).toEqual([200, 429])
    clock.advance(60)
    expect(await send()).toBe(200)
  })
})

describe("a parent key's request limit", () => {
  const requests: [method: string, path: string, body: unknown, status: number][] = [
    ['GET', '/v1/models', undefined, 200],
    ['HEAD', '/v1/models', undefined, 200],
    ['POST', '/v1/chat/completions', hello, 200],
    ['POST', '/v1/chat/completions', { ...hello, stream: true }, 200],
    ['POST', '/v1/chat/completions', {}, 400],
    ['POST', '/v1/chat/completions', '{', 415],
    ['GET', '/v1/agents/me', undefined, 403],
    ['GET', '/v1/agents/none', undefined, 404],
    ['GET', '/v1/models/none', undefined, 404],
    ['GET', '/v1/nothing', undefined, 404],
    ['GET', '/v1/agents/%zz', undefined, 400],
    ['PATCH', '/v1/models', undefined, 405],
  ]

  test('counts every request, regardless of the response status', async () => {
    const { app, now } = await start({ PARLEY_RATE_LIMIT_PARENT: '50' })
    for (const [index, [method, path, body, status]] of requests.entries()) {
      const answer = await app.call(method, path, { body })
      expect(answer.status).toBe(status)
      expect(limitsOf(answer)).toEqual(['50', String(49 - index), String(now + 60)])
    }
  })

  test('rejects a request with 429 before the request is parsed', async () => {
    const { app, clock, now } = await start({ PARLEY_RATE_LIMIT_PARENT: '1' })
    clock.advance(0.25)
    await app.call('GET', '/v1/models')
    clock.advance(17.5)
    for (const [method, path, body] of requests) {
      const answer = await app.call(method, path, { body })
      expect(answer.status).toBe(429)
      expect(answer.headers.get('retry-after')).toBe('43')
      expect(limitsOf(answer)).toEqual(['1', '0', String(now + 61)])
    }
    const refused = await app.call('GET', '/v1/models')
    expect(refused.body.error).toMatchObject({
      type: 'rate_limit_error',
      param: null,
      code: 'rate_limit_exceeded',
    })
    expect((await app.call('GET', '/v1/agents')).body).toEqual({
      error: refused.body.error.message,
      code: 'rate_limit_exceeded',
    })
  })

  test('allows requests again exactly after the number of seconds in Retry-After', async () => {
    const { app, clock } = await start({ PARLEY_RATE_LIMIT_PARENT: '2' })
    clock.advance(0.7)
    await app.call('GET', '/v1/models')
    clock.advance(33.3)
    await app.call('GET', '/v1/models')
    const refused = await app.call('GET', '/v1/models')
    const waitSeconds = Number(refused.headers.get('retry-after'))
    expect(waitSeconds).toBe(27)
    clock.advance(waitSeconds - 1)
    expect((await app.call('GET', '/v1/models')).status).toBe(429)
    clock.advance(1)
    expect((await app.call('GET', '/v1/models')).status).toBe(200)
  })

  test('applies to each key separately and is not reset by a rotation', async () => {
    const { app } = await start({ PARLEY_RATE_LIMIT_PARENT: '2' })
    const other = await createTenant(app)
    const { body } = await app.call('POST', '/v1/keys/rotate', { body: { overlap_seconds: 60 } })
    expect((await app.call('GET', '/v1/models', { key: body.key })).status).toBe(200)
    expect((await app.call('GET', '/v1/models', { key: body.key })).status).toBe(429)
    expect((await app.call('GET', '/v1/models')).status).toBe(429)
    expect((await app.call('GET', '/v1/models', { key: other })).status).toBe(200)
  })

  test('is disabled and omitted from headers if it is set to 0', async () => {
    const { app } = await start({ PARLEY_RATE_LIMIT_PARENT: '0' })
    for (let count = 0; count < 5; count++) {
      const answer = await app.call('GET', '/v1/models')
      expect([answer.status, ...limitsOf(answer)]).toEqual([200, ...none])
    }
  })

  test('is shared with the tRPC API, where each call in a batch counts', async () => {
    const { app } = await start({ PARLEY_RATE_LIMIT_PARENT: '5' })
    const single = await callProcedure(app, 'models.list')
    expect(limitsOf(single)).toEqual(['5', '4', expect.any(String)])
    const input = encodeURIComponent(JSON.stringify({ 0: { json: {} }, 1: { json: {} } }))
    const batch = await app.call('GET', `/trpc/keys.validate,models.list?batch=1&input=${input}`)
    expect(batch.status).toBe(200)
    expect(limitsOf(await app.call('GET', '/v1/models'))[1]).toBe('1')
    const partly = await app.call('GET', `/trpc/keys.validate,models.list?batch=1&input=${input}`)
    expect(partly.status).toBe(207)
    const refused = await callProcedure(app, 'models.list')
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused.body.error.json.data.reason).toBe('rate_limit_exceeded')
  })
})

describe("an agent key's request limits", () => {
  test('apply to the agent as a whole and to each address', async () => {
    const env = { ...behindProxy, PARLEY_RATE_LIMIT_AGENT: '5', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '3' }
    const { app } = await start(env)
    const { agent_key: key } = await app.createAgent()
    const ask = async (address: string) => {
      const answer = await list(app, address, key)
      return [answer.status, ...limitsOf(answer).slice(0, 2)]
    }
    expect(await ask('192.0.2.1')).toEqual([200, '3', '2'])
    expect(await ask('192.0.2.1')).toEqual([200, '3', '1'])
    expect(await ask('192.0.2.1')).toEqual([200, '3', '0'])
    expect(await ask('192.0.2.1')).toEqual([429, '3', '0'])
    // The rejected request did not count toward the agent's limit.
    expect(await ask('192.0.2.2')).toEqual([200, '5', '1'])
    expect(await ask('192.0.2.2')).toEqual([200, '5', '0'])
    expect(await ask('192.0.2.3')).toEqual([429, '5', '0'])
    expect((await app.call('GET', '/v1/models')).status).toBe(200)
  })

  test("allow a client that waits for Retry-After, even if other clients have used up the agent's limit", async () => {
    const env = { ...behindProxy, PARLEY_RATE_LIMIT_AGENT: '4', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '2' }
    const { app, clock } = await start(env)
    const { agent_key: key } = await app.createAgent()
    for (const address of ['192.0.2.7', '192.0.2.7', '192.0.2.8']) await list(app, address, key)
    clock.advance(30)
    await list(app, '192.0.2.9', key)
    for (let count = 0; count < 3; count++) {
      expect((await list(app, '192.0.2.9', key)).headers.get('retry-after')).toBe('30')
    }
    clock.advance(30)
    expect((await list(app, '192.0.2.9', key)).status).toBe(200)
  })

  test('can be disabled separately', async () => {
    const { app } = await start({ PARLEY_RATE_LIMIT_AGENT: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '7' })
    const { agent_key: key } = await app.createAgent()
    expect(limitsOf(await app.call('GET', '/v1/models', { key })).slice(0, 2)).toEqual(['7', '6'])
  })

  test('treat an IPv6 /64 network as one address', async () => {
    const { app } = await start({ ...behindProxy, PARLEY_RATE_LIMIT_AGENT_ADDRESS: '3' })
    const { agent_key: key } = await app.createAgent()
    const remaining = async (address: string) => limitsOf(await list(app, address, key))[1]
    expect(await remaining('2001:db8::1')).toBe('2')
    expect(await remaining('2001:db8:0:0:ffff::2')).toBe('1')
    expect(await remaining('2001:db8::a:b:c:d')).toBe('0')
    expect(await remaining('2001:db8:0:1::1')).toBe('2')
    expect(await remaining('2001:db8:1::1')).toBe('2')
    expect(await remaining('2001::db8:0:0:1:1')).toBe('2')
    expect(await remaining('2001::1')).toBe('2')
    expect(await remaining('::ffff:192.0.2.1')).toBe('2')
    expect(await remaining('192.0.2.1')).toBe('1')
  })
})
