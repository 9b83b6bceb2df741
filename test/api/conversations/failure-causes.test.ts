/** Tests that turns' diagnostics name the causes of failures, consistent with the provider's own log. */
import { describe, expect, test } from 'vitest'
import { setBudget } from '../../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { TestApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { STORING } from '../../support/conversations.ts'
import { createFallbackHarness, noRetries, onlyForModel } from '../../support/fallbacks.ts'
import { findFreePort } from '../../support/free-port.ts'
import { startMcpHttpServer, waitForTools, withMcp } from '../../support/mcp.ts'
import { eventually } from '../../support/process.ts'
import { citySchema, tool, toolCallResponse, type Way } from '../../support/tools.ts'
import { ownerOf } from '../../support/usage.ts'

const harness = await startChatHarness()
const { startAgent } = createFallbackHarness(harness)
const CHAT = '/v1/chat/completions'
const quick = {
  ...noRetries,
  PARLEY_BREAKER_CALLS: '0',
  PARLEY_BACKEND_IDLE_SECONDS: '0.4',
  PARLEY_BACKEND_FIRST_BYTE_SECONDS: '0.4',
  PARLEY_RECONNECT_SECONDS: '0',
}

async function start(env: object = {}, options: Parameters<typeof harness.start>[1] = {}, yaml = STORING) {
  const app = await harness.start({ ...quick, ...env }, { clock: systemClock, ...options })
  const { agent_key: key, agent_id: id } = await app.createAgent(yaml)
  const ask = (text: string, more: object = {}) =>
    app.call('POST', CHAT, { key, body: chatRequest(text, { model: undefined, ...more }) })
  return { app, id, key, ask }
}

/** Returns the newest turn with its diagnostics, once it has ended. */
async function readLast(app: TestApp) {
  const read = async () => {
    const { body: list } = await app.call('GET', '/v1/conversations?limit=1')
    const { body: turns } = await app.call('GET', `/v1/conversations/${list.data[0].id}/turns?limit=1`)
    return (await app.call('GET', `/v1/turns/${turns.data[0].id}`)).body
  }
  expect(await eventually(async () => (await read()).status !== 'in_progress', true)).toBe(true)
  return read()
}

/** Lists how the chat requests ended in the provider's log: an answer, a scripted fault or a disconnect. */
async function readLog() {
  const requests = await harness.listChats()
  return Promise.all(requests.map(async ({ id }) => (await harness.upstream.waitForEnd(id)).endedBy))
}

type Ended = 'answer' | 'script' | 'client'
type Case = readonly [
  what: string,
  script: string,
  endedBy: Ended,
  attempt: { readonly outcome: string; readonly cause: string; readonly http_status?: number },
  turn?: object,
]

const byStatus = (status: number) => ({
  ...{ outcome: 'backend_error', cause: `status_${Math.floor(status / 100)}xx`, http_status: status },
})
const protocol = { outcome: 'backend_error', cause: 'protocol' }
const timeout = { outcome: 'backend_timeout', cause: 'timeout' }
const unreachable = { outcome: 'backend_unavailable', cause: 'unreachable' }
const interrupted = (cause: string) => ({ outcome: 'stream_interrupted', cause })
const incomplete = { status: 'incomplete', reason: 'interrupted' }
const completion = (fields: object) =>
  JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', ...fields })

const wholeCases: readonly Case[] = [
  ['redirects', '{{up:redirect http://127.0.0.1:9/}}', 'answer', byStatus(307)],
  ['requires payment', '{{up:status 402}}', 'answer', byStatus(402)],
  ['returns an unusual status', '{{up:status 418}}', 'answer', byStatus(418)],
  ['does not know the model', '{{up:status 404}}{{up:message no such model}}', 'answer', byStatus(404)],
  [
    'fails with an HTML page',
    '{{up:status 500}}{{up:type text/html}}{{up:body <h1>}}',
    'answer',
    byStatus(500),
  ],
  ['answers with an HTML page', '{{up:type text/html}}{{up:body <html>}}', 'answer', protocol],
  ['answers with an empty body', '{{up:body }}', 'answer', protocol],
  ['answers with an empty object', '{{up:body {}}}', 'answer', protocol],
  ['answers with an error and the status 200', '{{up:body {"error":{"message":"m"}}}}', 'answer', protocol],
  ['answers without choices', `{{up:body ${completion({ choices: [] })}}}`, 'answer', protocol],
  ['sends headers that are too large', `{{up:header X-Long: ${'y'.repeat(40_000)}}}`, 'answer', protocol],
  ['sends an answer that is too long', '{{up:until-close}}{{up:flood 40000000}}', 'client', protocol],
  ['does not respond', '{{up:hang}}', 'client', timeout],
  ['stalls within its answer', '{{up:hang-after}}', 'client', timeout],
  ['closes the connection within its answer', '{{up:cut-off}}', 'script', unreachable],
  ['resets the connection within its answer', '{{up:reset-after}}', 'script', unreachable],
]

const streamedCases: readonly Case[] = [
  ['redirects', '{{up:redirect http://127.0.0.1:9/}}', 'answer', byStatus(307)],
  ['answers with an HTML page', '{{up:type text/html}}', 'answer', protocol],
  ['answers with JSON', '{{up:type application/json}}', 'answer', protocol],
  ['does not respond', '{{up:hang}}', 'client', timeout],
  ['sends only headers', '{{up:hang-after}}', 'client', timeout],
  ['stalls after three events', '{{up:hang-after 3}}', 'client', timeout, incomplete],
  ['resets the connection before the first event', '{{up:reset-after}}', 'script', unreachable],
  [
    'resets the connection after three events',
    '{{up:reset-after 3}}',
    'script',
    interrupted('unreachable'),
    incomplete,
  ],
  ['disconnects after three events', '{{up:cut-off 3}}', 'script', interrupted('unreachable'), incomplete],
  ['ends before the first event', '{{up:end-after}}', 'answer', protocol],
  ['ends after three events', '{{up:end-after 3}}', 'answer', interrupted('protocol'), incomplete],
  ['begins with half a line', '{{up:half-line}}', 'answer', protocol],
  ['ends with half a line', '{{up:half-line 3}}', 'answer', interrupted('protocol'), incomplete],
  ['begins with an invalid event', '{{up:bad-json}}', 'answer', protocol],
  ['sends an invalid event', '{{up:bad-json 3}}', 'answer', interrupted('protocol'), incomplete],
  ['begins with an error event', '{{up:error-frame}}', 'answer', { ...protocol, cause: 'error_event' }],
  ['sends an error event', '{{up:error-frame 3}}', 'answer', interrupted('error_event'), incomplete],
  ['sends an event that is too long', '{{up:giant 20000000}}', 'client', interrupted('protocol')],
  ['never sends a finish reason', '{{up:no-finish}}', 'answer', interrupted('protocol'), incomplete],
]

describe.each([
  ['a whole answer', false, wholeCases],
  ['a stream', true, streamedCases],
])('the diagnostics of %s name the cause if the provider', (_, stream, cases) => {
  for (const [what, script, endedBy, attempt, turn = { status: 'failed' }] of cases)
    test(what, async () => {
      const { app, ask } = await start()
      await ask(`a b c d ${script}`, { stream })
      const { diagnostics, ...rest } = await readLast(app)
      expect(diagnostics.attempts).toMatchObject([{ round: 1, http_status: null, ...attempt }])
      expect(diagnostics.stopped).toBeNull()
      expect(rest).toMatchObject({ ...turn, error_code: attempt.outcome })
      expect(await readLog()).toEqual([endedBy])
    })
})

describe('the diagnostics report the provider as unreachable', () => {
  test.each([
    ['if its host name does not resolve', async () => 'http://provider.invalid/v1'],
    ['if nothing listens on its port', async () => `http://127.0.0.1:${await findFreePort()}/v1`],
    ['if it does not speak TLS', async () => harness.upstream.url.replace('http:', 'https:')],
  ])('%s', async (_, url) => {
    const { app, ask } = await start({ PARLEY_GATEWAY_URL: await url() }, {}, `${STORING}model: up-chat\n`)
    expect((await ask('Hello')).status).toBe(503)
    const { diagnostics, error_code: code } = await readLast(app)
    expect([code, diagnostics.attempts]).toMatchObject([
      'backend_unavailable',
      [{ ...unreachable, http_status: null }],
    ])
    expect(await readLog()).toEqual([])
  })
})

describe('a turn names the reason why its answer is incomplete', () => {
  test.each([
    ['content_filter', 'content_filter'],
    ['length', 'max_output_tokens'],
  ])('if the finish reason is %s', async (finish, reason) => {
    const { app, ask } = await start()
    const message = { role: 'assistant', content: 'Hm' }
    const body = completion({ choices: [{ index: 0, message, finish_reason: finish }] })
    expect((await ask(`{{up:body ${body}}}`)).status).toBe(200)
    const { diagnostics, ...turn } = await readLast(app)
    expect(turn).toMatchObject({ status: 'incomplete', reason, error_code: null })
    expect(diagnostics.attempts).toMatchObject([{ outcome: 'ok', cause: null, http_status: null }])
    expect(await readLog()).toEqual(['answer'])
  })
})

describe('the attempts in the diagnostics', () => {
  test('include the failed and the successful attempt of a request that is retried', async () => {
    const { app, ask } = await start({ PARLEY_BACKEND_ATTEMPTS: '2' })
    expect((await ask('{{up:first 1}}{{up:status 500}}')).status).toBe(200)
    expect((await readLast(app)).diagnostics.attempts).toMatchObject([
      byStatus(500),
      { outcome: 'ok', cause: null },
    ])
    expect(await readLog()).toEqual(['answer', 'answer'])
  })

  test('include the failed attempt of the fallback model', async () => {
    const { app, ask } = await startAgent({}, quick, undefined, STORING)
    expect((await ask('{{up:status 503}}')).status).toBe(502)
    const { diagnostics } = await readLast(app)
    expect(diagnostics).toMatchObject({
      fallback: true,
      attempts: [
        { model: 'up-chat', cause: 'status_5xx', http_status: 503 },
        { model: 'up-small', cause: 'status_5xx', http_status: 503 },
      ],
    })
    expect(await readLog()).toEqual(['answer', 'answer'])
  })

  test('do not include a model whose circuit breaker is open', async () => {
    const { app, ask } = await startAgent({}, { ...quick, PARLEY_BREAKER_CALLS: '1' }, undefined, STORING)
    await ask(onlyForModel('{{up:reset}}'))
    expect((await readLast(app)).diagnostics.attempts).toMatchObject([unreachable, { model: 'up-small' }])
    expect(await readLog()).toEqual(['script', 'answer'])
    await harness.upstream.clear()
    expect((await ask('Hello')).status).toBe(200)
    const { diagnostics } = await readLast(app)
    expect(diagnostics.route.skipped).toEqual([
      { provider: 'gateway', model: 'up-chat', why: 'breaker_open' },
    ])
    expect(diagnostics.attempts).toMatchObject([{ model: 'up-small', outcome: 'ok' }])
    expect(await readLog()).toEqual(['answer'])
  })

  test('include a failed attempt that follows a tool call', async () => {
    const { app, ask } = await start(
      {},
      { tools: { weather: tool(() => 'Sunny') } },
      `${STORING}tools: [weather]\n`,
    )
    await harness.upstream.script(CHAT, '{{up:tool weather {}}}', 1)
    expect((await ask('{{up:status 529}}')).status).toBe(502)
    const { diagnostics } = await readLast(app)
    expect(diagnostics.attempts).toMatchObject([
      { round: 1, outcome: 'ok' },
      { round: 2, ...byStatus(529) },
    ])
    expect(diagnostics.tools).toMatchObject([{ name: 'weather', outcome: 'ok' }])
    expect(await readLog()).toEqual(['answer', 'answer'])
  })
})

describe('the diagnostics name a tool', () => {
  const modelCalls = (name: string, args = '{}', way: Way = 'whole') =>
    harness.answerWith(toolCallResponse(way, [{ name, args }]), 1)
  const never = tool(() => new Promise(() => {}))

  test('whose arguments are invalid', async () => {
    const weather = tool(() => 'Sunny', { inputSchema: citySchema })
    const { app, ask } = await start({}, { tools: { weather } }, `${STORING}tools: [weather]\n`)
    await modelCalls('weather', '{"city":5}')
    expect((await ask('Hello')).status).toBe(200)
    expect((await readLast(app)).diagnostics.tools).toMatchObject([
      { name: 'weather', origin: 'host', outcome: 'invalid_arguments' },
    ])
    expect(await readLog()).toEqual(['answer', 'answer'])
  })

  test('that does not answer in time', async () => {
    const env = { PARLEY_TOOL_SECONDS: '0.1' }
    const { app, ask } = await start(env, { tools: { never } }, `${STORING}tools: [never]\n`)
    await modelCalls('never')
    expect((await ask('Hello')).status).toBe(200)
    expect((await readLast(app)).diagnostics.tools).toMatchObject([{ name: 'never', outcome: 'timeout' }])
    expect(await readLog()).toEqual(['answer', 'answer'])
  })

  test('that was running when the turn was cancelled', async () => {
    const running = Promise.withResolvers<void>()
    const waiting = tool(() => {
      running.resolve()
      return new Promise(() => {})
    })
    const { app, key } = await start({}, { tools: { waiting } }, `${STORING}tools: [waiting]\n`)
    await modelCalls('waiting', '{}', 'streamed')
    const body = { input: 'Hello', background: true }
    const { body: response } = await app.call('POST', '/v1/responses', { key, body })
    await running.promise
    await app.call('POST', `/v1/responses/${response.id}/cancel`, { key })
    const { diagnostics, status } = await readLast(app)
    expect([status, diagnostics.stopped]).toEqual(['cancelled', 'cancelled'])
    expect(diagnostics.tools).toMatchObject([{ name: 'waiting', outcome: 'cancelled' }])
    expect(await readLog()).toEqual(['answer'])
  })

  test.each([
    ['that reports an error', 'fail', 'tool_error', async () => {}],
    ['whose MCP server is slow', 'wait', 'timeout', async () => {}],
    ['whose MCP server is down', 'echo', 'server_unavailable', (kill: () => Promise<void>) => kill()],
  ] as const)('%s', async (_, name, outcome, prepare) => {
    const server = await startMcpHttpServer()
    const env = { ...(await withMcp({ shop: { url: server.url } })), PARLEY_TOOL_SECONDS: '1' }
    const { app, ask } = await start(env, {}, `${STORING}tools: [${name}]\n`)
    await waitForTools(app, [name])
    await prepare(() => server.kill())
    await modelCalls(name, name === 'echo' ? '{"text":"a"}' : '{}')
    expect((await ask('Hello')).status).toBe(200)
    expect((await readLast(app)).diagnostics.tools).toMatchObject([{ name, origin: 'mcp', outcome }])
    expect(await readLog()).toEqual(['answer', 'answer'])
  })
})

describe('the diagnostics state why a turn was stopped', () => {
  test('if a client cancels it', async () => {
    const { app, key } = await start({ PARLEY_BACKEND_IDLE_SECONDS: '20' })
    const body = { input: '{{up:hang-after 3}}', background: true }
    const { body: response } = await app.call('POST', '/v1/responses', { key, body })
    await harness.upstream.waitForPath(CHAT)
    await app.call('POST', `/v1/responses/${response.id}/cancel`, { key })
    const { diagnostics, status } = await readLast(app)
    expect([status, diagnostics.stopped]).toEqual(['cancelled', 'cancelled'])
    expect(diagnostics.attempts).toMatchObject([{ outcome: 'stopped', cause: null }])
    expect(await readLog()).toEqual(['client'])
  })

  test('if its only reader disconnects', async () => {
    const { app, key } = await start({ PARLEY_BACKEND_IDLE_SECONDS: '20' })
    const leaving = new AbortController()
    const response = await fetch(app.url + CHAT, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(chatRequest('{{up:hang-after 3}}', { model: undefined, stream: true })),
      signal: leaving.signal,
    })
    await response.body?.getReader().read()
    leaving.abort()
    expect(await readLog()).toEqual(['client'])
    const { diagnostics, status } = await readLast(app)
    expect([status, diagnostics.stopped]).toEqual(['incomplete', 'left'])
    expect(diagnostics.attempts).toMatchObject([{ outcome: 'stopped', cause: null }])
  })
})

test('the diagnostics of a turn contain no attempt if the token budget is too small for its first round', async () => {
  const { app, ask } = await start()
  await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 5 })
  expect((await ask('Hello', { max_tokens: 10 })).status).toBe(429)
  const { diagnostics, error_code: code, status } = await readLast(app)
  expect([status, code, diagnostics.attempts]).toEqual(['failed', 'insufficient_quota', []])
  expect(await readLog()).toEqual([])
})

test('the diagnostics show the round after which a token budget was spent', async () => {
  const { app, ask } = await start(
    {},
    { tools: { weather: tool(() => 'Sunny '.repeat(2_000)) } },
    `${STORING}tools: [weather]\n`,
  )
  await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 5_000 })
  const { status } = await ask('{{up:first 1}}{{up:tool weather {}}}', {
    max_tokens: 10,
  })
  const { diagnostics, error_code: code } = await readLast(app)
  expect([status, code]).toEqual([429, 'insufficient_quota'])
  expect(diagnostics.attempts).toMatchObject([{ round: 1, outcome: 'ok' }])
  expect(diagnostics.tools).toMatchObject([{ name: 'weather', outcome: 'ok' }])
  expect(diagnostics.budget.settled).toBeGreaterThan(0)
  expect(await readLog()).toEqual(['answer'])
})
