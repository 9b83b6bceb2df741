/** Tests that budgets limit the answers of providers that ignore token limits or report a wrong usage. */
import { request as sendHttp } from 'node:http'
import { describe, expect, test } from 'vitest'
import { setBudget } from '../../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { asAdmin, root } from '../../support/admin.ts'
import { openApp, startApp, type TestApp } from '../../support/app.ts'
import { auditRowsOf } from '../../support/audit.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { behindProxy } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import {
  type HostilePlan,
  type HostileProvider,
  startHostileProvider,
} from '../../support/hostile-provider.ts'
import type { ChatBody } from '../../support/metered-provider.ts'
import { makeFolder } from '../../support/process.ts'
import { tool } from '../../support/tools.ts'
import { listBudgetCounters, ownerOf, sendChat } from '../../support/usage.ts'

const MODEL = { model: 'far/hostile' }
/** The messages of `sendChat` with the content `hi` in bytes, and 16 for the message. */
const INPUT = '{"messages":[{"role":"user","content":"hi"}]}'.length + 16
const AGENT = 'name: A\ninstructions: B\nmodel: far/hostile\ntools: [lookup]\n'
const DAY_SECONDS = 86_400

interface Started {
  readonly app: TestApp
  readonly provider: HostileProvider
}

interface Options {
  readonly metering?: 'bytes' | 'reported'
  readonly limit?: number
  readonly mode?: 'enforce' | 'observe'
  readonly env?: Record<string, string>
  readonly clock?: ReturnType<typeof createFakeClock>
}

async function start(
  plan: (body: ChatBody) => HostilePlan,
  {
    metering = 'reported',
    limit = 1_000_000,
    mode = 'enforce',
    env = {},
    clock = createFakeClock(),
  }: Options = {},
): Promise<Started> {
  const provider = await startHostileProvider(plan)
  const far = `providers:\n  far: { url: ${provider.url}, metering: ${metering} }\n`
  const PARLEY_CONFIG = await writeConfigFile(far)
  const tools = { lookup: tool(() => 'found') }
  const app = await startApp({ PARLEY_BACKEND_ATTEMPTS: '1', ...env, PARLEY_CONFIG }, { clock, tools })
  const body = { scope: { type: 'key', id: ownerOf(app).tenantId }, period: 'day', limit, mode }
  expect((await app.call('POST', '/v1/budgets', { body })).status).toBe(201)
  return { app, provider }
}

async function readCounter(app: TestApp): Promise<{ used: number; reserved: number }> {
  const [counter] = await listBudgetCounters(app)
  return { used: counter?.used ?? 0, reserved: counter?.reserved ?? 0 }
}

const ask = { model: MODEL.model, messages: [{ role: 'user', content: 'hi' }] }

/** Streams an answer; returns its text and its finish reason. */
async function stream(app: TestApp, more: object = {}) {
  const { status, headers, events, isDone } = await app.stream({ ...ask, ...more })
  const choices = events.flatMap((event) => event.choices)
  const text = choices.map(({ delta }) => delta.content ?? '').join('')
  const finish = choices.map(({ finish_reason: reason }) => reason).findLast((reason) => reason !== null)
  return { status, headers, text, finish, isDone }
}

const readMeters = (app: TestApp) => app.service.deps.meters.list()

describe('with the metering `reported`, an answer that ignores the token limit', () => {
  const endless = () => ({ piece: 'word ', pieces: 100_000 })

  test('is ended at 32 bytes for each granted token and 1,024 more', async () => {
    const { app, provider } = await start(endless)
    const { text, finish, isDone } = await stream(app, { max_tokens: 100 })
    expect([text.length, finish, isDone]).toEqual([100 * 32 + 1_025, 'length', true])
    expect(provider.events).toBeLessThan(1_000)
    // The provider has broken its contract, so that the whole reservation is booked.
    expect(await readCounter(app)).toEqual({ used: INPUT + 100, reserved: 0 })
  })

  test('makes Parley measure the next answers of the model in bytes for a day', async () => {
    const clock = createFakeClock()
    const { app, provider } = await start(endless, { clock })
    await stream(app, { max_tokens: 100 })
    const until = clock.now() / 1000 + DAY_SECONDS
    expect(readMeters(app)).toEqual([
      { provider: 'far', model: 'hostile', metering: 'bytes', reason: 'bytes', until },
    ])
    const { text, finish, headers } = await stream(app, { max_tokens: 100 })
    expect([text.length, finish]).toEqual([400, 'length'])
    expect(headers.get('x-parley-budget')).toBe('limited')
    expect(provider.requests.map(({ max_tokens }) => max_tokens)).toEqual([100, 100])
    clock.advance(DAY_SECONDS * 1000)
    expect((await stream(app, { max_tokens: 100 })).text.length).toBeGreaterThan(400)
  })

  test('is not ended without an enforcing budget', async () => {
    const { app } = await start(() => ({ pieces: 2_000 }), { limit: 1, mode: 'observe' })
    expect((await stream(app, { max_tokens: 10 })).text.length).toBe(10_000)
    expect(readMeters(app)).toEqual([])
  })

  test('does not run tools that it has called, and ends the turn', async () => {
    const delta = {
      tool_calls: [
        { index: 0, id: 'c1', type: 'function', function: { name: 'lookup', arguments: '     ' } },
      ],
    }
    const { app, provider } = await start(() => ({ delta, pieces: 10_000, finishReason: 'tool_calls' }))
    const { agent_key } = await app.createAgent(AGENT)
    const answer = await app.stream({ ...ask, model: undefined, max_tokens: 10 }, agent_key)
    expect(answer.isDone).toBe(true)
    expect(provider.requests).toHaveLength(1)
  })
})

describe('reported usage above a bound', () => {
  test.each([
    ['output', { prompt_tokens: 20, completion_tokens: 500, total_tokens: 520 }, 100],
    ['input', { prompt_tokens: 5_000, completion_tokens: 50, total_tokens: 5_050 }, INPUT],
  ])('is booked in full, and reported to the operator (%s)', async (kind, usage, bound) => {
    for (const more of [{}, { stream: true }]) {
      const { app } = await start(() => ({ pieces: 50, usage }))
      expect((await sendChat(app, 'hi', { ...MODEL, max_tokens: 100, ...more })).status).toBe(200)
      expect(await readCounter(app)).toEqual({ used: usage.total_tokens, reserved: 0 })
      expect(readMeters(app)).toMatchObject([{ provider: 'far', model: 'hostile', reason: kind }])
      await app.service.deps.violations.flush()
      const { db } = app.service.deps
      const stored = db.selectFrom('budget_events').selectAll().where('type', '=', 'budget.bound_violated')
      const [event, ...others] = await stored.execute()
      expect([event?.parent_key_id, others]).toEqual([null, []])
      expect(JSON.parse(event?.body ?? '')).toEqual({
        ...{ provider: 'far', model: 'hostile', kind, bound },
        reported: kind === 'input' ? usage.prompt_tokens : usage.completion_tokens,
      })
      const { text } = await app.call('GET', '/metrics', { key: null })
      expect(text).toContain(
        `parley_budget_bound_violations_total{provider="far",model="hostile",kind="${kind}"} 1`,
      )
    }
  })

  test('of embeddings is booked in full', async () => {
    const usage = { prompt_tokens: 900, total_tokens: 900 }
    for (const metering of ['reported', 'bytes'] as const) {
      const { app } = await start(() => ({ usage }), { metering })
      const body = { model: MODEL.model, input: 'hi' }
      expect((await app.call('POST', '/v1/embeddings', { body })).status).toBe(200)
      const isTrusted = metering === 'reported'
      expect(await readCounter(app)).toEqual({ used: isTrusted ? 900 : 'hi'.length + 16, reserved: 0 })
      expect(readMeters(app)).toHaveLength(isTrusted ? 1 : 0)
    }
  })

  test('has no effect without an enforcing budget', async () => {
    const usage = { prompt_tokens: 5_000, completion_tokens: 5_000, total_tokens: 10_000 }
    const { app } = await start(() => ({ usage }), { mode: 'observe' })
    await sendChat(app, 'hi', { ...MODEL, max_tokens: 100 })
    expect(await readCounter(app)).toEqual({ used: usage.total_tokens, reserved: 0 })
    expect(readMeters(app)).toEqual([])
  })
})

describe('with the metering `bytes`', () => {
  const bytes = { metering: 'bytes' } as const

  test.each([
    ['too little', { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }],
    ['too much', { prompt_tokens: 90_000, completion_tokens: 90_000, total_tokens: 180_000 }],
  ])('the bytes are booked if the provider reports %s', async (_what, usage) => {
    for (const more of [{}, { stream: true }]) {
      const { app } = await start(() => ({ piece: 'größe ', pieces: 20, usage }), bytes)
      expect((await sendChat(app, 'hi', { ...MODEL, max_tokens: 100, ...more })).status).toBe(200)
      expect(await readCounter(app)).toEqual({ used: INPUT + 20 * 8, reserved: 0 })
      expect(readMeters(app)).toEqual([])
    }
  })

  test('text with escape sequences is counted as the bytes that it stands for', async () => {
    const piece = 'a"\\\n\t€\u{1f600}\u0001/'
    const { app } = await start(() => ({ piece, pieces: 20 }), bytes)
    const { text } = await stream(app, { max_tokens: 1_000 })
    expect(text).toBe(piece.repeat(20))
    expect((await readCounter(app)).used).toBe(INPUT + Buffer.byteLength(piece) * 20)
  })

  test('a stream ends at four bytes for each requested token, and books them', async () => {
    const { app, provider } = await start(() => ({ piece: 'wörd!!! ', pieces: 10_000 }), bytes)
    const { text, finish, isDone, headers } = await stream(app, { max_tokens: 100 })
    expect([text, finish, isDone]).toEqual([`${'wörd!!! '.repeat(44)}wör`, 'length', true])
    expect(headers.get('x-parley-budget')).toBe('limited')
    expect(await readCounter(app)).toEqual({ used: INPUT + 400, reserved: 0 })
    expect(provider.events).toBeLessThan(60)
    expect(provider.requests[0]?.max_tokens).toBe(100)
  })

  test('a complete answer is requested as a stream and ends at the limit', async () => {
    const { app, provider } = await start(() => ({ piece: 'word ', pieces: 10_000 }), bytes)
    const { status, body, headers } = await sendChat(app, 'hi', { ...MODEL, max_tokens: 100 })
    expect(status).toBe(200)
    expect(body.choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: 'word '.repeat(80) },
        logprobs: null,
        finish_reason: 'length',
      },
    ])
    expect(headers.get('x-parley-budget')).toBe('limited')
    expect(provider.requests).toMatchObject([{ stream: true, max_tokens: 100 }])
    expect(await readCounter(app)).toEqual({ used: INPUT + 400, reserved: 0 })
  })

  test('a complete answer that fits has its usage, finish reason and tool calls', async () => {
    const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }
    const call = { id: 'c1', type: 'function', function: { name: 'find', arguments: '{"a":1}' } }
    const { app } = await start(
      () => ({ delta: { tool_calls: [{ index: 0, ...call }] }, usage, finishReason: 'tool_calls' }),
      bytes,
    )
    const { body } = await sendChat(app, 'hi', { ...MODEL })
    expect(body).toMatchObject({
      ...{ id: 'c', object: 'chat.completion', model: 'hostile', usage },
      choices: [{ index: 0, message: { content: null, tool_calls: [call] }, finish_reason: 'tool_calls' }],
    })
    const output = 'find'.length + '{"a":1}'.length
    expect((await readCounter(app)).used).toBe(INPUT + output)
  })

  test('a small budget limits the answer to the bytes that it can pay for', async () => {
    const limit = INPUT + 1_000
    const { app } = await start(() => ({ pieces: 10_000 }), { ...bytes, limit })
    expect((await stream(app)).text.length).toBe(1_000)
    expect(await readCounter(app)).toEqual({ used: limit, reserved: 0 })
  })

  test('a slow client cannot keep a provider from being ended', async () => {
    const piece = 'x'.repeat(4_096)
    const { app, provider } = await start(() => ({ piece, pieces: 100_000 }), { ...bytes, limit: 10 ** 8 })
    const body = JSON.stringify({ ...ask, max_tokens: 2 ** 20, stream: true })
    const headers = { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' }
    const request = sendHttp(`${app.url}/v1/chat/completions`, { method: 'POST', headers })
    // Nothing reads the response.
    request.on('error', () => {}).end(body)
    await expect.poll(() => provider.isClosed, { timeout: 20_000 }).toBe(true)
    expect(provider.events).toBeGreaterThanOrEqual(1_024)
    expect(provider.events).toBeLessThan(1_024 + 200)
    request.destroy()
    await expect.poll(() => readCounter(app)).toEqual({ used: INPUT + 2 ** 22, reserved: 0 })
  })

  test('each round of a turn with tools is limited', async () => {
    const delta = {
      tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'lookup', arguments: '{}' } }],
    }
    const { app, provider } = await start(
      ({ messages }) =>
        messages.some(({ role }) => role === 'tool')
          ? { pieces: 10_000 }
          : { delta, finishReason: 'tool_calls' },
      bytes,
    )
    const { agent_key } = await app.createAgent(AGENT)
    for (const more of [{}, { stream: true }]) {
      const chat = { ...more, model: undefined, max_tokens: 50 }
      const answer = await sendChat(app, 'hi', chat, agent_key)
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('"length"')
    }
    expect(provider.requests).toHaveLength(4)
    expect((await readCounter(app)).reserved).toBe(0)
  })
})

describe('an administrator', () => {
  const admin = { ...behindProxy, PARLEY_ADMIN_EMAILS: root }
  const meterOf = (app: TestApp) => ({
    ...{ object: 'model_meter', provider: 'far', model: 'hostile', metering: 'bytes', reason: 'bytes' },
    until: app.service.deps.clock.now() / 1000 + DAY_SECONDS,
  })
  const path = '/model-meters/far/hostile'

  test('lists the models that are measured in bytes, and clears one', async () => {
    const { app } = await start(() => ({ pieces: 100_000 }), { env: admin })
    expect((await asAdmin(app, 'GET', '/model-meters')).body).toEqual({ object: 'list', data: [] })
    await stream(app, { max_tokens: 100 })
    await app.service.deps.violations.flush()
    const meter = meterOf(app)
    expect((await asAdmin(app, 'GET', '/model-meters')).body).toEqual({ object: 'list', data: [meter] })
    const { body } = await asAdmin(app, 'GET', '/prices?q=far/hostile')
    expect(body.data).toMatchObject([{ id: 'far/hostile', meter }])
    const rows = await auditRowsOf(app, async () => {
      const { body: deleted } = await asAdmin(app, 'DELETE', path)
      expect(deleted).toEqual({ object: 'model_meter', provider: 'far', model: 'hostile', deleted: true })
    })
    expect(rows).toMatchObject([
      { action: 'meter.delete', target_kind: 'model', target_id: 'far/hostile', tenant: null },
    ])
    expect((await asAdmin(app, 'DELETE', path)).status).toBe(404)
    expect((await stream(app, { max_tokens: 100 })).text.length).toBeGreaterThan(400)
  })

  test('is the only caller that can list or clear meters', async () => {
    const { app } = await start(() => ({ pieces: 100_000 }), { env: admin })
    await stream(app, { max_tokens: 100 })
    for (const [method, rest] of [
      ['GET', '/model-meters'],
      ['DELETE', path],
    ] as const)
      expect((await app.call(method, `/v1/manager/admin${rest}`)).status).toBe(403)
    expect(readMeters(app)).toHaveLength(1)
  })
})

test('a restarted server still measures a model in bytes', async () => {
  const provider = await startHostileProvider(() => ({ pieces: 100_000 }))
  const far = `providers:\n  far: { url: ${provider.url} }\n`
  const env = { PARLEY_CONFIG: await writeConfigFile(far), PARLEY_DATA_DIR: await makeFolder() }
  const first = await openApp(env)
  await setBudget(first.service.deps, serviceActor, ownerOf(first), { day: 1_000_000 })
  await stream(first, { max_tokens: 100 })
  await first.close()
  const second = await openApp(env, {})
  try {
    expect(readMeters(second)).toMatchObject([{ provider: 'far', model: 'hostile', reason: 'bytes' }])
  } finally {
    await second.close()
  }
})
