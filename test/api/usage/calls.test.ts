/** Tests the content, filters, pages and access rules of the list of calls. */
import { describe, expect, test } from 'vitest'
import { root, startAdminApp } from '../../support/admin.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { asUser } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import {
  createFallbackHarness,
  defaultModel,
  fallbackModel,
  noRetries,
  onlyForModel,
} from '../../support/fallbacks.ts'
import { callProcedure } from '../../support/rpc.ts'
import { sendChat } from '../../support/usage.ts'

const { startAgent } = createFallbackHarness(await startChatHarness())

/** A Friday, 8 hours before midnight UTC. */
const AFTERNOON = Date.UTC(2027, 0, 15, 16) / 1000

async function listCalls(app: TestApp, query = '', key = app.key) {
  const { status, body, text } = await app.call('GET', `/v1/usage/calls${query}`, { key })
  if (status !== 200) throw new Error(text)
  return body
}

const idsOf = (list: { data: { id: string }[] }) => list.data.map(({ id }) => id)

/** Writes calls directly, one per second from `AFTERNOON` on, and returns the tenant's id. */
async function insertCalls(app: TestApp, count: number, change: (at: number) => object = () => ({})) {
  const tenantId = app.key.slice(4, 16)
  const rows = Array.from({ length: count }, (_, at) => ({
    id: `${String((AFTERNOON + at) * 1000).padStart(15, '0')}-abcdef-${(at + 1).toString(36)}`,
    request_id: `request-${at}`,
    parent_key_id: tenantId,
    agent_id: '',
    model: 'mock',
    provider: 'mock',
    status: 'ok',
    prompt_tokens: 1,
    completion_tokens: 2,
    is_estimated: 0,
    is_streamed: 0,
    latency_ms: 5,
    first_byte_ms: null,
    created_at: AFTERNOON + at,
    ...change(at),
  }))
  for (let at = 0; at < count; at += 500)
    await app.service.deps.db
      .insertInto('usage_calls')
      .values(rows.slice(at, at + 500))
      .execute()
  return tenantId
}

test('calls can be found by the id of their request, in the list and in the export', async () => {
  const app = await startAdminApp()
  await insertCalls(app, 25)
  expect((await listCalls(app, '?request_id=request-7')).data).toMatchObject([{ request_id: 'request-7' }])
  expect((await listCalls(app, '?request_id=request-7&status=left')).data).toEqual([])
  expect((await listCalls(app, '?request_id=request')).data).toEqual([])
  const { text } = await app.call('GET', '/v1/usage/calls.csv?request_id=request-7')
  expect(text.trim().split('\r\n')).toHaveLength(2)
  const other = await createTenant(app)
  expect((await listCalls(app, '?request_id=request-7', other)).data).toEqual([])
  const path = '/v1/manager/admin/usage/calls?request_id=request-7'
  const { body } = await app.call('GET', path, asUser(root))
  expect(body.data).toMatchObject([{ request_id: 'request-7' }])
})

test('a call is listed with its tokens, times and outcome', async () => {
  const app = await startApp({}, { clock: createFakeClock(AFTERNOON) })
  const { agent_id, agent_key } = await app.createAgent()
  await app.call('POST', '/v1/chat/completions', {
    key: agent_key,
    body: { messages: [{ role: 'user', content: 'hello' }], stream: true },
    headers: { 'X-Request-Id': 'my-own-id' },
  })
  expect(await listCalls(app)).toEqual({
    object: 'list',
    data: [
      {
        id: expect.stringMatching(/^0018\d{11}-\w{6}-1$/),
        request_id: 'my-own-id',
        key: app.key.slice(4, 16),
        agent: agent_id,
        model: 'mock',
        provider: 'mock',
        status: 'ok',
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
        total_tokens: expect.any(Number),
        estimated: false,
        streamed: true,
        latency_ms: 0,
        first_byte_ms: 0,
        created_at: AFTERNOON,
        attempts: 1,
        failed_attempts: [],
        cost: '0',
        price_id: expect.stringMatching(/^[0-9a-f]{64}$/),
        rounds: 1,
        cached_tokens: 0,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        audio_tokens: 0,
        image_tokens: 0,
      },
    ],
    has_more: false,
    next_after: null,
  })
})

describe('the attempts of a call', () => {
  test('name each failed request and count the fallback that answered', async () => {
    const { app, ask } = await startAgent({}, { PARLEY_BACKEND_ATTEMPTS: '2' })
    await ask(onlyForModel('{{up:status 503}}'))
    const [call] = (await listCalls(app)).data
    expect(call).toMatchObject({ status: 'ok', ...fallbackModel, attempts: 3 })
    expect(call.failed_attempts).toEqual([
      { ...defaultModel, reason: 'status_5xx' },
      { ...defaultModel, reason: 'status_5xx' },
    ])
  })

  test('name the failures of a call without an answer', async () => {
    const { app, ask } = await startAgent({ fallback_models: [] }, noRetries)
    await ask('{{up:status 429}}')
    const [call] = (await listCalls(app)).data
    expect(call).toMatchObject({ attempts: 1, failed_attempts: [{ ...defaultModel, reason: 'status_429' }] })
    expect(call.status).not.toBe('ok')
  })

  test('are unknown for calls that an earlier version recorded', async () => {
    const app = await startApp()
    await insertCalls(app, 1)
    expect((await listCalls(app)).data).toMatchObject([{ attempts: null, failed_attempts: [] }])
  })
})

test('REST and tRPC return the same list of calls', async () => {
  const app = await startApp()
  await sendChat(app, 'hello')
  const typed = await callProcedure(app, 'usage.calls', { limit: 1 })
  expect(typed.body.result.data.json).toEqual(await listCalls(app, '?limit=1'))
})

describe('GET /v1/usage/calls', () => {
  test('filters calls by agent, model and status', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    await sendChat(app, 'by the agent', {}, agent_key)
    await sendChat(app, 'without an agent')
    await sendChat(app, 'broken [[error:400]]')
    const [failed, alone, byAgent] = idsOf(await listCalls(app))
    expect(idsOf(await listCalls(app, `?agent=${agent_id}`))).toEqual([byAgent])
    expect(idsOf(await listCalls(app, '?agent='))).toEqual([failed, alone])
    expect(idsOf(await listCalls(app, '?status=ok'))).toEqual([alone, byAgent])
    expect(idsOf(await listCalls(app, '?model=mock&status=ok&agent='))).toEqual([alone])
    expect(idsOf(await listCalls(app, '?model=other'))).toEqual([])
  })

  test('filters calls by an inclusive range of days or seconds', async () => {
    const app = await startApp()
    await insertCalls(app, 4)
    const secondsOf = async (query: string) =>
      (await listCalls(app, query)).data.map((call: { created_at: number }) => call.created_at - AFTERNOON)
    expect(await secondsOf(`?from=${AFTERNOON + 1}&to=${AFTERNOON + 2}`)).toEqual([2, 1])
    expect(await secondsOf('?from=2027-01-15&to=2027-01-15')).toEqual([3, 2, 1, 0])
    expect(await secondsOf('?to=2027-01-14')).toEqual([])
    expect(await secondsOf('?from=2027-01-16')).toEqual([])
  })

  test.each([
    ['from=2027-01-16&to=2027-01-15', 'from: must not be later than `to`'],
    ['from=yesterday', 'from: must be a date (YYYY-MM-DD, in UTC) or Unix seconds'],
    ['after=nothing', 'after: must be the id of a call'],
    ['limit=101', 'limit: must be at most 100'],
  ])('rejects the query %s', async (query, message) => {
    const app = await startApp()
    const { status, body } = await app.call('GET', `/v1/usage/calls?${query}`)
    expect([status, body.error.message]).toEqual([400, message])
  })
})

describe('GET /v1/usage/calls.csv', () => {
  const readCsv = async (app: TestApp, path: string, headers: Record<string, string>) => {
    const answer = await app.fetch(app.url + path, { headers })
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename=calls.csv')
    return (await answer.text()).trimEnd().split('\r\n')
  }
  const bearer = (app: TestApp) => ({ Authorization: `Bearer ${app.key}` })

  test('exports all matching calls, newest first, even if they fill several pages', async () => {
    const app = await startApp()
    await insertCalls(app, 250, (at) => ({ status: at % 2 === 0 ? 'ok' : 'left' }))
    const [head, ...lines] = await readCsv(app, '/v1/usage/calls.csv?status=ok', bearer(app))
    expect(head).toBe(
      'id,created_at,request_id,key,agent,provider,model,status,prompt_tokens,completion_tokens,estimated,streamed,latency_ms,first_byte_ms,attempts,failed_attempts,cost,price_id,rounds,cached_tokens,cache_write_tokens,reasoning_tokens',
    )
    expect(lines).toHaveLength(125)
    const id = `${(AFTERNOON + 248) * 1000}`.padStart(15, '0')
    expect(lines[0]).toBe(
      `${id}-abcdef-6x,2027-01-15T16:04:08.000Z,request-248,${app.key.slice(4, 16)},,mock,mock,ok,1,2,false,false,5,,,,,,,0,0,0`,
    )
    expect(new Set(lines).size).toBe(125)
  })

  test('includes the reasons for failed attempts and escapes text for spreadsheets', async () => {
    const app = await startApp()
    const failed = [{ provider: 'one', model: 'a,b', reason: 'timeout' }]
    await insertCalls(app, 1, () => ({
      request_id: '=1+1',
      attempts: 2,
      failed_attempts: JSON.stringify(failed),
    }))
    const [, line] = await readCsv(app, '/v1/usage/calls.csv', bearer(app))
    expect(line).toContain(",'=1+1,")
    expect(line).toMatch(/,2,"one\/a,b: timeout",,,,0,0,0$/)
  })

  test("exports only the caller's own calls, or the calls of all keys for administrators", async () => {
    const app = await startAdminApp()
    const other = await createTenant(app)
    await sendChat(app, 'mine')
    await sendChat(app, 'theirs', {}, other)
    expect(await readCsv(app, '/v1/usage/calls.csv', bearer(app))).toHaveLength(2)
    const { headers = {} } = asUser(root)
    const all = await readCsv(app, '/v1/manager/admin/usage/calls.csv', headers as Record<string, string>)
    expect(all).toHaveLength(3)
    const denied = await app.call('GET', '/v1/manager/admin/usage/calls.csv')
    expect(denied.status).toBe(403)
    const foreign = await app.call('GET', `/v1/usage/calls.csv?key=${other.slice(4, 16)}`)
    expect([foreign.status, foreign.body.error.param]).toEqual([403, 'key'])
  })

  test('rejects an invalid period before it sends a file', async () => {
    const app = await startApp()
    const { status, body } = await app.call('GET', '/v1/usage/calls.csv?from=2027-01-16&to=2027-01-15')
    expect([status, body.error.message]).toEqual([400, 'from: must not be later than `to`'])
  })
})

describe('the pagination of GET /v1/usage/calls', () => {
  test('returns every call once, newest first', async () => {
    const app = await startApp()
    await insertCalls(app, 5)
    const first = await listCalls(app, '?limit=2')
    const second = await listCalls(app, `?limit=2&after=${first.next_after}`)
    const third = await listCalls(app, `?limit=2&after=${second.next_after}`)
    const all = [first, second, third].flatMap(idsOf)
    expect(all).toEqual(idsOf(await listCalls(app)))
    expect(all).toHaveLength(5)
    expect([first, second, third].map(({ has_more }) => has_more)).toEqual([true, true, false])
  })

  test('searches a limited number of calls for each page and continues on the next page', async () => {
    const app = await startApp()
    await insertCalls(app, 10_500, (at) => (at === 0 ? { status: 'internal_error' } : {}))
    const first = await listCalls(app, '?status=internal_error')
    expect([first.data, first.has_more]).toEqual([[], true])
    const second = await listCalls(app, `?status=internal_error&after=${first.next_after}`)
    expect(second.data).toHaveLength(1)
    expect([second.has_more, second.next_after]).toEqual([false, null])
  })
})

describe('the authorization of GET /v1/usage/calls', () => {
  test('restricts a parent key to its own calls', async () => {
    const app = await startApp()
    const otherKey = await createTenant(app)
    await sendChat(app, 'mine')
    expect(idsOf(await listCalls(app, '', otherKey))).toEqual([])
    const tenantId = app.key.slice(4, 16)
    expect(idsOf(await listCalls(app, `?key=${tenantId}`))).toHaveLength(1)
    const refused = await app.call('GET', `/v1/usage/calls?key=${tenantId}`, { key: otherKey })
    expect([refused.status, refused.body.error.message]).toEqual([
      403,
      'key: a parent key can only list its own calls',
    ])
  })

  test('rejects an agent key with 403', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    expect((await app.call('GET', '/v1/usage/calls', { key: agent_key })).status).toBe(403)
  })
})

test('GET /v1/usage with `status` includes only the calls with this status', async () => {
  const app = await startApp({ PARLEY_USAGE_RETENTION_DAYS: '40' }, { clock: createFakeClock(AFTERNOON) })
  await insertCalls(app, 2_501, (at) => ({
    status: at % 5 === 0 ? 'backend_error' : 'ok',
    model: at % 2 === 0 ? 'even' : 'odd',
  }))
  const read = async (query: string) => (await app.call('GET', `/v1/usage?${query}`)).body
  const failed = await read('status=backend_error')
  expect(failed).toMatchObject({
    kept_days: 40,
    total: { requests: 501, errors: 501, prompt_tokens: 501, completion_tokens: 1_002 },
    data: [{ day: '2027-01-15', requests: 501, latency_ms: { p50: 5 } }],
  })
  expect((await read('status=ok')).total).toMatchObject({ requests: 2_000, errors: 0 })
  const byModel = await read('status=backend_error&group_by=model&model=odd')
  expect(byModel.data).toMatchObject([{ model: 'odd', requests: 250 }])
  expect((await read('status=ok&from=2027-01-01&to=2027-01-14')).data).toEqual([])
  expect(await read('')).not.toHaveProperty('kept_days')
})
