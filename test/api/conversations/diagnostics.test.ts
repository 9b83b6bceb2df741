/**
 * Tests that the diagnostics of a turn name the route, the attempts, the policy and the causes of failures.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { setBudget } from '../../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import type { TestApp } from '../../support/app.ts'
import { chatRequest, PROVIDER_KEY, startChatHarness } from '../../support/chat-harness.ts'
import { STORING } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createFallbackHarness, noRetries, onlyForModel } from '../../support/fallbacks.ts'
import { resume } from '../../support/stored-chats.ts'
import { tool } from '../../support/tools.ts'
import { ownerOf } from '../../support/usage.ts'

const harness = await startChatHarness()
const { startAgent } = createFallbackHarness(harness)
const fast = { ...noRetries, PARLEY_BREAKER_CALLS: '0' }

/** Returns the newest turn with its diagnostics. */
async function readLast(app: TestApp) {
  const { body: list } = await app.call('GET', '/v1/conversations?limit=1')
  const { body: turns } = await app.call('GET', `/v1/conversations/${list.data[0].id}/turns?limit=1`)
  return (await app.call('GET', `/v1/turns/${turns.data[0].id}`)).body
}

const start = (env = {}, yaml = STORING) => startAgent({}, { ...fast, ...env }, createFakeClock(), yaml)

describe('the diagnostics of a turn', () => {
  test('contain the agent, the route, the attempt, the tokens and the times', async () => {
    const { app, id, ask } = await start()
    expect((await ask('Hello')).status).toBe(200)
    const { diagnostics, prompt_tokens: tokens } = await readLast(app)
    expect(diagnostics).toEqual({
      agent: { id, version: 1 },
      route: {
        requested: null,
        chosen: { provider: 'gateway', model: 'up-chat' },
        source: 'policy',
        skipped: [],
      },
      attempts: [
        {
          ...{
            round: 1,
            provider: 'gateway',
            model: 'up-chat',
            outcome: 'ok',
            cause: null,
            http_status: null,
          },
          ...{ started_ms: expect.any(Number), ended_ms: expect.any(Number) },
        },
      ],
      fallback: false,
      policy: [],
      history: null,
      tools: [],
      budget: null,
      stopped: null,
      tokens: expect.objectContaining({ input_tokens: tokens }),
      timings: { first_event_ms: expect.any(Number), duration_ms: expect.any(Number) },
      resumes: 0,
    })
  })

  test('name a model that was skipped because the policy does not allow it', async () => {
    const { app, id, ask } = await startAgent(
      {
        default_model: null,
        allowed_models: [{ provider: 'gateway', model: 'up-small' }],
        fallback_models: [],
      },
      fast,
      createFakeClock(),
      `${STORING}model: up-chat\n`,
    )
    expect((await ask('Hello')).status).toBe(200)
    expect((await readLast(app)).diagnostics).toMatchObject({
      agent: { id },
      route: {
        chosen: { provider: 'gateway', model: 'up-small' },
        source: 'default',
        skipped: [{ provider: 'gateway', model: 'up-chat', why: 'not_allowed' }],
      },
    })
  })

  test('list each failed attempt before the fallback', async () => {
    const { app, ask } = await start()
    expect((await ask(onlyForModel('{{up:status 503}}'))).status).toBe(200)
    expect((await readLast(app)).diagnostics).toMatchObject({
      route: { chosen: { model: 'up-small' } },
      fallback: true,
      attempts: [
        { model: 'up-chat', outcome: 'backend_error', cause: 'status_5xx', http_status: 503 },
        { model: 'up-small', outcome: 'ok', cause: null },
      ],
    })
  })

  test('name tools that the agent withholds, and limits that its policy lowers', async () => {
    const { app, id, key } = await startAgent({ max_output_tokens: 50 }, fast, createFakeClock(), STORING)
    const named = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })
    const yaml = `${STORING}tools: [own]\npageTools: { blocked: [close] }\n`
    expect((await app.call('PUT', `/v1/agents/${id}`, { body: { yaml } })).status).toBe(200)
    await app.call('POST', '/v1/chat/completions', {
      key,
      body: {
        ...chatRequest('Hello', { model: undefined }),
        max_tokens: 500,
        tools: [named('drop'), named('postMessage_close'), named('own')],
      },
    })
    expect((await readLast(app)).diagnostics.policy).toEqual([
      { kind: 'tool_withheld', name: 'drop' },
      { kind: 'page_tool_blocked', name: 'postMessage_close' },
      { kind: 'tokens_capped', name: 'max_tokens' },
    ])
  })

  test('list the tools that ran, with their outcomes', async () => {
    const app = await harness.start(fast, {
      tools: {
        weather: tool(() => 'Sunny'),
        broken: tool(() => {
          throw new Error('no')
        }),
      },
    })
    const { agent_key: key } = await app.createAgent(`${STORING}tools: [weather, broken]\n`)
    const text = '{{up:first 1}}{{up:tool weather {}}}{{up:tool broken {}}}{{up:tool other {}}}'
    await app.call('POST', '/v1/chat/completions', { key, body: chatRequest(text, { model: undefined }) })
    const { diagnostics } = await readLast(app)
    const tools = diagnostics.tools as { name: string }[]
    expect(tools.toSorted((one, other) => (one.name < other.name ? -1 : 1))).toMatchObject([
      { name: 'broken', origin: 'host', outcome: 'tool_failed', approval: null },
      { name: 'other', origin: null, outcome: 'unknown_tool' },
      { name: 'weather', origin: 'host', outcome: 'ok', duration_ms: expect.any(Number) },
    ])
    expect(diagnostics.attempts).toMatchObject([{ round: 1 }, { round: 2 }])
  })

  test('count the history items that were sent and those that were left out', async () => {
    const { app, id } = await start({}, STORING.replace('keep: 30d', 'keep: 30d, history: { turns: 1 }'))
    const { body: conversation } = await app.call('POST', '/v1/conversations', { body: {} })
    for (const input of ['One', 'Two', 'Three'])
      await app.call('POST', '/v1/responses', {
        body: { model: `agent/${id}`, input, conversation: conversation.id },
      })
    expect((await readLast(app)).diagnostics.history).toEqual({ sent: 2, left_out: 2 })
  })
})

test('the diagnostics of a turn contain the tokens that a budget reserved and settled', async () => {
  const { app, ask } = await start()
  await setBudget(app.service.deps, serviceActor, ownerOf(app), { day: 1_000_000 })
  expect((await ask('Hello')).status).toBe(200)
  const { diagnostics, prompt_tokens, completion_tokens } = await readLast(app)
  expect(diagnostics.budget.settled).toBe(prompt_tokens + completion_tokens)
  expect(diagnostics.budget.reserved).toBeGreaterThanOrEqual(diagnostics.budget.settled)
})

test('the diagnostics of a turn count how often its stream was resumed', async () => {
  const { app, key } = await start()
  const { text } = await app.call('POST', '/v1/chat/completions', {
    key,
    body: chatRequest('Hello', { model: undefined, stream: true }),
  })
  const id = /^id: (.*)$/m.exec(text)?.[1] as string
  for (let count = 0; count < 2; count++) await resume(app, key, id)
  await expect.poll(async () => (await readLast(app)).diagnostics.resumes).toBe(2)
})

interface Failure {
  readonly script: string
  readonly expected: Readonly<Record<string, unknown>>
}

const statuses = [400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 529]
const failures: Failure[] = [
  ...statuses.map(
    (status): Failure => ({
      script: `{{up:status ${status}}}`,
      expected: {
        cause: status === 429 ? 'status_429' : `status_${Math.floor(status / 100)}xx`,
        http_status: status,
      },
    }),
  ),
  { script: '{{up:reset}}', expected: { cause: 'unreachable', http_status: null } },
  { script: '{{up:close}}', expected: { cause: 'unreachable', http_status: null } },
  { script: '{{up:body not json}}', expected: { cause: 'protocol' } },
]

describe('a failure', () => {
  let started: Awaited<ReturnType<typeof start>>

  beforeEach(async () => {
    started = await start()
  })

  for (const stream of [false, true])
    test(`is recorded with its cause but without the provider's key or host (${stream ? 'stream' : 'no stream'})`, async () => {
      const { app, id, key } = started
      await app.call('PUT', `/v1/agents/${id}/model-policy`, {
        body: { default_model: { provider: 'gateway', model: 'up-chat' } },
      })
      for (const { script, expected } of failures) {
        const body = chatRequest(script, { model: undefined, stream })
        await app.call('POST', '/v1/chat/completions', { key, body })
        const turn = await readLast(app)
        expect(turn.diagnostics.attempts, script).toMatchObject([{ round: 1, ...expected }])
        expect(turn.error_code, script).toBe(turn.diagnostics.attempts[0].outcome)
        const text = JSON.stringify(turn)
        expect(text).not.toContain(PROVIDER_KEY)
        expect(text).not.toContain(new URL(harness.upstream.url).host)
        expect(Buffer.byteLength(JSON.stringify(turn.diagnostics))).toBeLessThan(32 * 1024)
      }
    })

  test('in the middle of a stream is recorded with its cause', async () => {
    const { app, key } = started
    for (const script of ['{{up:chunks 5}}{{up:error-frame 3}}', '{{up:chunks 5}}{{up:bad-json 3}}']) {
      const body = chatRequest(script, { model: undefined, stream: true })
      await app.call('POST', '/v1/chat/completions', { key, body })
      const turn = await readLast(app)
      expect(turn.status).toBe('incomplete')
      expect(turn.diagnostics.attempts, script).toMatchObject([
        { outcome: 'stream_interrupted', cause: expect.any(String) },
      ])
      expect(turn.error_code).toBe('stream_interrupted')
    }
  })
})
