/** Tests when a model's circuit breaker opens and closes, and when the fallback answers. */
import { describe, expect, test } from 'vitest'
import type { Answer } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createFallbackHarness, noRetries, onlyForModel, routingHeadersOf } from '../../support/fallbacks.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'
const { startAgent, askedModels } = createFallbackHarness(harness)

describe("a model's circuit breaker", () => {
  const fail = onlyForModel('{{up:status 500}}')
  const repeat = async (count: number, call: () => Promise<unknown>) => {
    for (let done = 0; done < count; done++) await call()
  }
  const modelOf = async (call: Promise<Answer>) => (await call).body.model

  async function startFailing(failures = 10, env: Readonly<Record<string, string>> = noRetries) {
    const clock = createFakeClock()
    const agent = await startAgent({}, { PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0', ...env }, clock)
    await repeat(failures, () => agent.ask(`hello ${fail}`))
    await harness.upstream.clear()
    return { ...agent, clock }
  }

  test('opens after ten failed calls, after which calls go directly to the fallback', async () => {
    const { ask } = await startFailing()
    const answer = await ask('hello')
    expect(routingHeadersOf(answer)).toEqual(['gateway', '1', 'true'])
    expect(await askedModels()).toEqual(['up-small'])
  })

  test('stays closed after nine failed calls', async () => {
    const { ask } = await startFailing(9)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('stays closed while fewer than half of the calls fail', async () => {
    const { ask } = await startFailing(0)
    await repeat(6, () => ask('hello'))
    await repeat(5, () => ask(`hello ${fail}`))
    expect(await modelOf(ask('hello'))).toBe('up-chat')
    await repeat(2, () => ask(`hello ${fail}`))
    expect(await modelOf(ask('hello'))).toBe('up-small')
  })

  test('ignores failures older than ten seconds', async () => {
    const { ask, clock } = await startFailing(9)
    clock.advance(10)
    await ask(`hello ${fail}`)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('counts each failed call once, however many attempts it made', async () => {
    const { ask } = await startFailing(9, { PARLEY_BACKEND_ATTEMPTS: '3' })
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test.each([
    ['invalid requests', '{{up:status 400}}'],
    ['responses with 429', '{{up:status 429}}'],
  ])('ignores %s', async (_what, script) => {
    const { ask } = await startFailing(0)
    await repeat(12, () => ask(`hello ${onlyForModel(script)}`))
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('lets one call through after 15 seconds and closes if it succeeds', async () => {
    const { ask, clock } = await startFailing()
    clock.advance(14.9)
    expect(await modelOf(ask('hello'))).toBe('up-small')
    clock.advance(0.1)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
    expect(await modelOf(ask(`hello ${fail}`))).toBe('up-small')
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('stays open if the call after 15 seconds fails', async () => {
    const { ask, clock } = await startFailing()
    clock.advance(15)
    expect(routingHeadersOf(await ask(`hello ${fail}`))).toEqual(['gateway', '2', 'true'])
    clock.advance(14)
    expect(routingHeadersOf(await ask('hello'))).toEqual(['gateway', '1', 'true'])
  })

  test('lets only one call at a time through after 15 seconds', async () => {
    const { ask, clock, app, key } = await startFailing()
    clock.advance(15)
    const controller = new AbortController()
    const body = chatRequest('{{up:hang}}', { model: undefined })
    const probe = app
      .call('POST', path, { key, body, signal: controller.signal })
      .catch((error) => error.name)
    await harness.upstream.waitForRequest('up:hang')
    expect(await modelOf(ask('hello'))).toBe('up-small')
    controller.abort()
    expect(await probe).toBe('AbortError')
    const [aborted] = await harness.listChats()
    await harness.upstream.waitForEnd(aborted?.id as number)
    // An aborted call does not show whether the model works, so the next call is still allowed.
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('limits each call to one attempt while it is open if the model has no fallback', async () => {
    const { app } = await startFailing(10, { PARLEY_BACKEND_ATTEMPTS: '3' })
    const answer = await app.call('POST', path, { body: chatRequest(`hello ${fail}`) })
    expect(answer.status).toBe(502)
    expect(await askedModels()).toEqual(['up-chat'])
    expect((await app.call('POST', path, { body: chatRequest('hello') })).status).toBe(200)
  })

  test('opens after ten streams fail midway', async () => {
    const { ask } = await startFailing(0)
    await repeat(10, () => ask('hello you {{up:reset-after 1}}', { stream: true }))
    expect(await modelOf(ask('hello'))).toBe('up-small')
  })

  test('never opens when it is disabled', async () => {
    const { ask } = await startFailing(12, { ...noRetries, PARLEY_BREAKER_CALLS: '0' })
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })
})
