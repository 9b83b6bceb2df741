/** Models that keep failing rest while their fallback answers, and are tried again. */
import { describe, expect, test } from 'vitest'
import type { Answer } from '../../support/app.ts'
import { say, startChatStand } from '../../support/chat-stand.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createFallbackStand, ONCE, only, told } from '../../support/fallbacks.ts'

const stand = await startChatStand()
const path = '/v1/chat/completions'
const { startAgent, askedModels } = createFallbackStand(stand)

describe('a model that keeps failing', () => {
  const fail = only('{{up:status 500}}')
  const times = async (count: number, call: () => Promise<unknown>) => {
    for (let done = 0; done < count; done++) await call()
  }
  const modelOf = async (call: Promise<Answer>) => (await call).body.model

  async function startFailing(failures = 10, env: Readonly<Record<string, string>> = ONCE) {
    const clock = createFakeClock()
    const agent = await startAgent({}, { PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0', ...env }, clock)
    await times(failures, () => agent.ask(`hello ${fail}`))
    await stand.upstream.clear()
    return { ...agent, clock }
  }

  test('rests after ten calls, and its fallback answers at once', async () => {
    const { ask } = await startFailing()
    const answer = await ask('hello')
    expect(told(answer)).toEqual(['gateway', '1', 'true'])
    expect(await askedModels()).toEqual(['up-small'])
  })

  test('does not rest after nine', async () => {
    const { ask } = await startFailing(9)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('does not rest when fewer than half of its calls failed', async () => {
    const { ask } = await startFailing(0)
    await times(6, () => ask('hello'))
    await times(5, () => ask(`hello ${fail}`))
    expect(await modelOf(ask('hello'))).toBe('up-chat')
    await times(2, () => ask(`hello ${fail}`))
    expect(await modelOf(ask('hello'))).toBe('up-small')
  })

  test('does not rest for what failed more than ten seconds ago', async () => {
    const { ask, clock } = await startFailing(9)
    clock.advance(10)
    await ask(`hello ${fail}`)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('counts a call once, however often it was tried', async () => {
    const { ask } = await startFailing(9, { PARLEY_BACKEND_ATTEMPTS: '3' })
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test.each([
    ["callers' mistakes", '{{up:status 400}}'],
    ['429s', '{{up:status 429}}'],
  ])('does not rest for %s', async (_what, script) => {
    const { ask } = await startFailing(0)
    await times(12, () => ask(`hello ${only(script)}`))
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('is tried by one call after 15 seconds, and is back when that is answered', async () => {
    const { ask, clock } = await startFailing()
    clock.advance(14.9)
    expect(await modelOf(ask('hello'))).toBe('up-small')
    clock.advance(0.1)
    expect(await modelOf(ask('hello'))).toBe('up-chat')
    expect(await modelOf(ask(`hello ${fail}`))).toBe('up-small')
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('rests on when that call fails', async () => {
    const { ask, clock } = await startFailing()
    clock.advance(15)
    expect(told(await ask(`hello ${fail}`))).toEqual(['gateway', '2', 'true'])
    clock.advance(14)
    expect(told(await ask('hello'))).toEqual(['gateway', '1', 'true'])
  })

  test('is tried by one call at a time', async () => {
    const { ask, clock, app, key } = await startFailing()
    clock.advance(15)
    const leaving = new AbortController()
    const body = say('{{up:hang}}', { model: undefined })
    const probe = app.call('POST', path, { key, body, signal: leaving.signal }).catch((error) => error.name)
    await stand.upstream.waitForRequest('up:hang')
    expect(await modelOf(ask('hello'))).toBe('up-small')
    leaving.abort()
    expect(await probe).toBe('AbortError')
    const [left] = await stand.listChats()
    await stand.upstream.waitForEnd(left?.id as number)
    // Whoever left has said nothing of the model: the next call tries it.
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })

  test('is asked all the same where there is nothing to fall back to, but not again', async () => {
    const { app } = await startFailing(10, { PARLEY_BACKEND_ATTEMPTS: '3' })
    const answer = await app.call('POST', path, { body: say(`hello ${fail}`) })
    expect(answer.status).toBe(502)
    expect(await askedModels()).toEqual(['up-chat'])
    expect((await app.call('POST', path, { body: say('hello') })).status).toBe(200)
  })

  test('is one whose streams break in the middle', async () => {
    const { ask } = await startFailing(0)
    await times(10, () => ask('hello you {{up:reset-after 1}}', { stream: true }))
    expect(await modelOf(ask('hello'))).toBe('up-small')
  })

  test('never rests when that is switched off', async () => {
    const { ask } = await startFailing(12, { ...ONCE, PARLEY_BREAKER_CALLS: '0' })
    expect(await modelOf(ask('hello'))).toBe('up-chat')
  })
})
