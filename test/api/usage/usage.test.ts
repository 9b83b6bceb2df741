/** Tests that the usage of every call is recorded, and how the API reports it. */

import { createTRPCClient, httpBatchLink } from '@trpc/client'
import superjson from 'superjson'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { AppRouter } from '../../../src/server/api.ts'
import { asAdmin, startAdminApp } from '../../support/admin.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { startUpstream } from '../../support/start-upstream.ts'
import { countBy, listUsage, sendChat, totalUsage } from '../../support/usage.ts'

const AFTERNOON = Date.UTC(2027, 0, 15, 16) / 1000

function calls(app: TestApp) {
  return app.service.deps.db.selectFrom('usage_calls').selectAll().orderBy('id').execute()
}

describe('a successful call', () => {
  test.each([
    ['complete', {}],
    ['streamed', { stream: true }],
  ])("is recorded with the backend's token counts (%s)", async (_how, more) => {
    const app = await startApp()
    const { body } = await sendChat(app, 'how much is this')
    await sendChat(app, 'how much is this', more)
    const { usage } = body
    expect(await totalUsage(app)).toMatchObject({
      requests: 2,
      errors: 0,
      prompt_tokens: 2 * usage.prompt_tokens,
      completion_tokens: 2 * usage.completion_tokens,
      total_tokens: 2 * usage.total_tokens,
      estimated_requests: 0,
    })
  })

  test('is recorded in one row with its tenant, model and outcome', async () => {
    const app = await startApp({}, { clock: createFakeClock(AFTERNOON) })
    const { agent_id, agent_key } = await app.createAgent()
    const answer = await app.call('POST', '/v1/chat/completions', {
      key: agent_key,
      body: { messages: [{ role: 'user', content: 'hello' }], stream: true },
      headers: { 'X-Request-Id': 'my-own-id' },
    })
    expect(answer.status).toBe(200)
    await totalUsage(app)
    expect(await calls(app)).toEqual([
      {
        id: expect.stringMatching(/^0018\d{11}-\w{6}-1$/),
        request_id: 'my-own-id',
        parent_key_id: app.key.slice(4, 16),
        agent_id,
        model: 'mock',
        provider: 'mock',
        status: 'ok',
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
        is_estimated: 0,
        is_streamed: 1,
        latency_ms: 0,
        first_byte_ms: 0,
        created_at: AFTERNOON,
        attempts: 1,
        failed_attempts: null,
        cost: 0,
        price_id: expect.stringMatching(/^[0-9a-f]{64}$/),
        rounds: 1,
        cached_tokens: 0,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        audio_tokens: 0,
        image_tokens: 0,
      },
    ])
  })

  test('is recorded even if the client repeats a request id', async () => {
    const app = await startApp()
    for (const _ of [1, 2]) {
      await app.call('POST', '/v1/chat/completions', {
        body: { messages: [{ role: 'user', content: 'hello' }] },
        headers: { 'X-Request-Id': 'again' },
      })
    }
    expect((await totalUsage(app)).requests).toBe(2)
  })

  test('is recorded with a time to the first byte only if it is streamed', async () => {
    const app = await startApp()
    await sendChat(app, 'whole')
    expect((await totalUsage(app)).first_byte_ms).toBeNull()
    await sendChat(app, 'in parts', { stream: true })
    expect((await totalUsage(app)).first_byte_ms).toEqual({
      p50: expect.any(Number),
      p95: expect.any(Number),
      p99: expect.any(Number),
    })
  })

  test('with a parent key is recorded for the agent in its model field', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    await sendChat(app, 'hello', { model: `agent/${agent_id}` })
    expect(await countBy(app, 'agent')).toEqual([[agent_id, 1]])
  })

  test('is recorded with the same tokens, streamed or not, if its turn has several model calls', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    const content = 'look [[tool:forbidden {}]]'
    await sendChat(app, content, {}, agent_key)
    await sendChat(app, content, { stream: true }, agent_key)
    await totalUsage(app)
    const recorded = await calls(app)
    expect(recorded.map(({ rounds }) => rounds)).toEqual([2, 2])
    const [whole, streamed] = recorded.map(({ prompt_tokens, completion_tokens, is_estimated }) => ({
      ...{ prompt_tokens, completion_tokens, is_estimated },
    }))
    expect(streamed).toEqual(whole)
    expect(whole).toMatchObject({ is_estimated: 0 })
    expect(whole?.prompt_tokens).toBeGreaterThan(0)
    expect(whole?.completion_tokens).toBeGreaterThan(0)
  })
})

describe('a failed call', () => {
  test.each([
    ['if the request is invalid', '[[error:400]]', 0],
    ['if the backend fails', '[[error:500]]', 0],
  ])('is recorded as an error without tokens (%s)', async (_when, content, tokens) => {
    const app = await startApp({}, { clock: createFakeClock() })
    await sendChat(app, content)
    await sendChat(app, content, { stream: true })
    expect(await totalUsage(app)).toMatchObject({ requests: 2, errors: 2, total_tokens: tokens })
  })

  test('is recorded with an estimate of the streamed tokens if it fails mid-stream', async () => {
    const app = await startApp({}, { clock: createFakeClock() })
    const content = '[[tokens:50]] [[break:20]]'
    await sendChat(app, content, { stream: true })
    expect(await totalUsage(app)).toMatchObject({
      requests: 1,
      errors: 1,
      prompt_tokens: Math.ceil(content.length / 4),
      completion_tokens: 20,
      estimated_requests: 1,
    })
    expect(await calls(app)).toMatchObject([{ status: 'backend_error', is_estimated: 1 }])
  })

  test('is not recorded if it was rejected before it was sent to a provider', async () => {
    const app = await startApp()
    await sendChat(app, 'hello', { model: 'unknown' })
    await sendChat(app, 'hello', { temperature: 3 })
    await sendChat(app, 'hello', {}, 'unknown-key')
    expect((await totalUsage(app)).requests).toBe(0)
  })
})

describe('a call that the client aborts', () => {
  test('is recorded with an estimate and not as an error if a stream has started', async () => {
    const app = await startApp()
    const leaving = new AbortController()
    const content = '[[delay:5]] [[tokens:90000]] continue'
    const response = await fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content }], stream: true }),
      signal: leaving.signal,
    })
    const reader = response.body?.getReader()
    for (let reads = 0; reads < 3; reads++) await reader?.read()
    leaving.abort()
    await expect.poll(() => totalUsage(app), { timeout: 10_000 }).toMatchObject({ requests: 1, errors: 0 })
    const total = await totalUsage(app)
    expect(total.prompt_tokens).toBe(Math.ceil(content.length / 4))
    expect(total.completion_tokens).toBeGreaterThanOrEqual(3)
    expect(total.completion_tokens).toBeLessThan(90_000)
    expect(await calls(app)).toMatchObject([{ status: 'left', is_estimated: 1 }])
  })

  test.each([
    ['a complete response', false],
    ['a stream', true],
  ])('is recorded with the prompt tokens if %s has not started', async (_what, stream) => {
    const upstream = await startUpstream()
    onTestFinished(upstream.stop)
    const app = await startApp({ PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: upstream.url })
    const leaving = new AbortController()
    const content = `{{up:hang}} ${'x'.repeat(388)}`
    const asking = fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content }], stream }),
      signal: leaving.signal,
    }).catch(() => {})
    await upstream.waitForRequest('{{up:hang}}')
    leaving.abort()
    await asking
    await expect
      .poll(() => totalUsage(app), { timeout: 10_000 })
      .toMatchObject({
        requests: 1,
        errors: 0,
        prompt_tokens: 100,
        completion_tokens: 0,
        estimated_requests: 1,
      })
  })
})

describe('GET /v1/usage', () => {
  test('returns totals by day, and each day ends at midnight UTC', async () => {
    const clock = createFakeClock(AFTERNOON)
    const app = await startApp({}, { clock })
    clock.advance(8 * 3600 - 1)
    await sendChat(app, 'in the last second')
    clock.advance(1)
    await sendChat(app, 'in the first')
    await sendChat(app, 'and once more')
    expect(await countBy(app, 'day')).toEqual([
      ['2027-01-15', 1],
      ['2027-01-16', 2],
    ])
    const rows = await listUsage(app)
    expect([rows.from, rows.to]).toEqual(['2026-12-18', '2027-01-16'])
  })

  test('includes each call in the day on which it started', async () => {
    const clock = createFakeClock(AFTERNOON)
    const app = await startApp({}, { clock })
    clock.advance(8 * 3600 - 1)
    const reads = await fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: '[[tokens:20000]]' }], stream: true }),
    })
    clock.advance(2)
    await reads.text()
    expect(await countBy(app, 'day')).toEqual([['2027-01-15', 1]])
  })

  test('returns totals by agent, most tokens first, with null for calls without an agent', async () => {
    const app = await startApp()
    const [small, large] = [await app.createAgent(), await app.createAgent()]
    await sendChat(app, 'hi', {}, small.agent_key)
    await sendChat(app, '[[tokens:500]]', {}, large.agent_key)
    await sendChat(app, '[[tokens:200]]')
    expect(await countBy(app, 'agent')).toEqual([
      [large.agent_id, 1],
      [null, 1],
      [small.agent_id, 1],
    ])
  })

  test('returns totals by model and provider', async () => {
    const app = await startApp()
    await sendChat(app, 'hi')
    await sendChat(app, 'hi')
    const { data, total } = await listUsage(app, '?group_by=model')
    expect(data).toEqual([{ model: 'mock', provider: 'mock', ...total }])
  })

  test('counts only the calls of the given agent and model', async () => {
    const app = await startAdminApp()
    const { agent_id, agent_key } = await app.createAgent()
    await sendChat(app, 'hi', {}, agent_key)
    await sendChat(app, 'hi')
    await sendChat(app, 'hi')
    const counts = async (query: string) => {
      const { data, total } = await listUsage(app, query)
      return [data.reduce((sum, { requests }) => sum + requests, 0), total.requests]
    }
    expect(await counts(`?agent=${agent_id}`)).toEqual([1, 1])
    expect(await counts('?agent=&group_by=model')).toEqual([2, 2])
    expect(await counts(`?agent=${agent_id}&model=mock`)).toEqual([1, 1])
    expect(await counts('?model=other&group_by=agent')).toEqual([0, 0])
    const { body } = await asAdmin(app, 'GET', `/usage?agent=${agent_id}&group_by=key`)
    expect(body.data).toMatchObject([{ key: app.key.slice(4, 16), requests: 1 }])
  })

  test.each([
    ['two dates', '&from=2027-01-16&to=2027-01-17'],
    ['two Unix times', `&from=${AFTERNOON + 86_400}&to=${AFTERNOON + 2 * 86_400}`],
    ['a date and a Unix time', `&from=2027-01-16&to=${AFTERNOON + 2 * 86_400}`],
  ])('includes the first and last day or second of a range given as %s', async (_what, range) => {
    const clock = createFakeClock(AFTERNOON)
    const app = await startApp({}, { clock })
    for (let day = 15; day <= 18; day++) {
      await sendChat(app, 'hi')
      clock.advance(86_400)
    }
    expect(await countBy(app, 'day', range)).toEqual([
      ['2027-01-16', 1],
      ['2027-01-17', 1],
    ])
  })

  test.each([
    ['from=yesterday', 'from'],
    ['to=2027-02-30', 'to'],
    ['from=-1', 'from'],
    ['from=1.5', 'from'],
    ['from=2027-01-16&to=2027-01-15', 'from'],
    ['from=2025-01-01&to=2027-01-15', 'from'],
    ['group_by=hour', 'group_by'],
  ])('rejects the query %s with an error that names the field', async (query, param) => {
    const app = await startApp()
    const { status, body } = await app.call('GET', `/v1/usage?${query}`)
    expect({ status, param: body.error.param }).toEqual({ status: 400, param })
    expect(body.error.message).toMatch(new RegExp(`^${param}: must `))
  })

  test('rejects an unknown field', async () => {
    const app = await startApp()
    expect((await app.call('GET', '/v1/usage?groupby=day')).status).toBe(400)
  })

  test("returns only the calling tenant's usage", async () => {
    const app = await startApp()
    const other = await createTenant(app)
    await sendChat(app, 'mine')
    expect((await totalUsage(app, other)).requests).toBe(0)
    await sendChat(app, 'theirs', {}, other)
    expect((await totalUsage(app, other)).requests).toBe(1)
    expect((await totalUsage(app)).requests).toBe(1)
  })

  test('returns 403 for an agent key', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    const { status, body } = await app.call('GET', '/v1/usage', { key: agent_key })
    expect({ status, code: body.error.code }).toEqual({ status: 403, code: 'insufficient_permissions' })
  })

  test('includes the usage of a deleted agent', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    await sendChat(app, 'hi', {}, agent_key)
    await app.call('DELETE', `/v1/agents/${agent_id}`)
    expect(await countBy(app, 'agent')).toEqual([[agent_id, 1]])
  })

  test('returns the same data as the tRPC procedure', async () => {
    const app = await startApp()
    await sendChat(app, 'hi')
    const headers = { Authorization: `Bearer ${app.key}` }
    const rpc = createTRPCClient<AppRouter>({
      links: [httpBatchLink({ url: `${app.url}/trpc`, transformer: superjson, headers })],
    })
    expect(await rpc.usage.list.query({ group_by: 'model' })).toEqual(await listUsage(app, '?group_by=model'))
  })
})
