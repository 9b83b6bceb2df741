/** Tests that the leak check in `support/log-leaks.ts` finds secrets and user content in log lines. */
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { describeError } from '../../../src/telemetry/log.ts'
import { startApp } from '../../support/app.ts'
import { forgeKey } from '../../support/forge-key.ts'
import { checkLine, takeLeaks } from '../../support/log-leaks.ts'
import { tool } from '../../support/tools.ts'

/** A log without redaction whose lines still pass through the leak check. */
const careless = pino({ level: 'debug' }, { write: checkLine })

describe('the leak check on log lines', () => {
  test.each([
    ['a parent key', forgeKey('svc_', 'a1'.repeat(28).slice(0, 55))],
    ['an agent key', forgeKey('agnt_key-', 'b2'.repeat(28).slice(0, 55))],
    ['an artifact token', `atk_abcdefgh.${'x'.repeat(40)}.${'y'.repeat(43)}`],
    ['a visitor token', `vst_${'x'.repeat(24)}.1800000000.${'y'.repeat(43)}`],
    ['a bearer token', 'Authorization: Bearer abcdefgh12345678'],
    ['a provider API key', 'sk-abcdefgh12345678'],
    ['a sign-in link', `http://127.0.0.1/console/sign-in#${'z'.repeat(43)}`],
  ])('finds %s', (_what, text) => {
    careless.warn({ err: new Error(`it failed with ${text}`) }, 'oh')
    expect(takeLeaks()).toHaveLength(1)
  })

  test('finds chat input, chat output and tool arguments', async () => {
    const gossip = tool((args) => {
      careless.info({ args }, 'a tool was called')
      return 'the neighbours have a dog'
    })
    const app = await startApp({}, { tools: { gossip } })
    const yaml = JSON.stringify({ name: 'A', instructions: 'B', tools: ['gossip'] })
    const { agent_key: key } = await app.createAgent(yaml)
    const content = '[[tool:gossip {"about": "the people upstairs"}]] Please describe everything.'
    const body = { messages: [{ role: 'user', content }] }
    const answer = await app.call('POST', '/v1/chat/completions', { key, body })
    expect(takeLeaks()).toEqual([expect.stringMatching(/^"the people upstairs" is in the line/)])
    careless.info('the user said: Please describe everything')
    expect(takeLeaks()).toHaveLength(1)
    expect(answer.body.choices[0].message.content).toContain('the neighbours have a dog')
    careless.info({ detail: 'and the answer was: the neighbours have a dog' }, 'oh')
    expect(takeLeaks()).toHaveLength(1)
  })

  test('finds the key of a request, even if the key has an unknown format', async () => {
    const app = await startApp()
    await app.call('GET', '/v1/models', { key: 'Zx81-spectrum-0123456789-qwerty' })
    careless.info('it was Zx81-spectrum-0123456789-qwerty')
    expect(takeLeaks()).toHaveLength(1)
  })

  test('ignores key hints and ordinary fields', async () => {
    careless.info({ requestId: 'a', path: '/v1/models', hint: 'svc_…a1b2', key: 'svc_012345678901…' }, 'fine')
    expect(takeLeaks()).toEqual([])
  })
})

test('an error description omits the values in the error', () => {
  const cause = Object.assign(new Error('row 7'), { code: 'E7', detail: 'Key (content)=(hello there)' })
  const parsing = (() => {
    try {
      return JSON.parse('hello there')
    } catch (error) {
      return error
    }
  })()
  const error = Object.assign(new Error('it failed', { cause }), { said: { message: 'hello there' } })
  expect(
    JSON.stringify([describeError(error), describeError(parsing), describeError('hello there')]),
  ).not.toContain('hello')
  expect(describeError(error)).toMatchObject({
    type: 'Error',
    message: 'it failed',
    stack: expect.stringMatching(/^\s+at /),
    cause: { message: 'row 7', code: 'E7' },
  })
})
