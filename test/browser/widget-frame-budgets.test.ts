/** Tests what visitors see when a budget of the agent is spent or reserved. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openVisible } from '../support/stored-frames.ts'
import {
  type FrameHarness,
  helper,
  keeper,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const LIMIT = 100_000
const SPENT = 'This chat has reached its usage limit. Please try again later.'

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness({ PARLEY_BUDGET_WAIT_SECONDS: '0' })
})
afterAll(() => harness?.close())

/** Creates an agent with a token budget, and opens a frame with it. */
async function openWithBudget(yaml: string, limit: number) {
  const { app } = harness
  const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
  const body = { scope: { type: 'agent', id }, unit: 'tokens', period: 'day', limit: String(limit) }
  expect((await app.call('POST', '/v1/budgets', { body })).status).toBe(201)
  const opened = await openVisible(harness, { key })
  onTestFinished(() => opened.page.close())
  return { opened, key }
}

/** Starts an answer that reserves the whole budget until the returned function is called. */
async function reserve(key: string): Promise<() => void> {
  const leaving = new AbortController()
  const messages = [{ role: 'user', content: `[[delay:200]] ${'word '.repeat(2000)}` }]
  const response = await fetch(`${harness.app.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ messages, model: 'mock', stream: true, store: false, max_tokens: LIMIT }),
    signal: leaving.signal,
  })
  const reader = response.body?.getReader()
  await reader?.read()
  const end = () => leaving.abort()
  onTestFinished(end)
  return end
}

const countCalls = ({ requests }: OpenFrame) =>
  requests.filter((url) => /chat\.stream|visitor\.(send|regenerate)/.test(url)).length

describe.each([
  ['stores', keeper],
  ['does not store', helper],
])('with an agent that %s conversations', (_what, yaml) => {
  test('a spent budget is explained without amounts, and the visitor can still write', async () => {
    const { opened } = await openWithBudget(yaml, 10)
    await opened.say('hello')
    const note = opened.frame.locator('.failure')
    await note.waitFor()
    expect(await note.locator('p').innerText()).toBe(SPENT)
    expect(countCalls(opened)).toBe(1)
    await opened.frame.locator('textarea').fill('Are you there?')
    expect(await opened.frame.getByRole('button', { name: 'Send' }).getAttribute('aria-disabled')).toBe(
      'false',
    )
    expect(await opened.said()).toContainEqual(
      expect.objectContaining({ type: 'error', code: 'rate_limited', reason: 'quota_spent' }),
    )
  })

  test('a request that a reserved budget rejects is repeated twice, and then explained', async () => {
    const { opened, key } = await openWithBudget(yaml, LIMIT)
    await reserve(key)
    await opened.say('hello')
    await visibleText(opened.frame, SPENT).waitFor()
    expect(countCalls(opened)).toBe(3)
    expect(await opened.frame.locator('.failure').count()).toBe(1)
    expect(await opened.frame.locator('textarea').isEnabled()).toBe(true)
  })

  test('a request that a reserved budget rejects is answered after the budget is free', async () => {
    const { opened, key } = await openWithBudget(yaml, LIMIT)
    const release = await reserve(key)
    await opened.say('hello')
    await expect.poll(() => countCalls(opened)).toBe(2)
    release()
    await visibleText(opened.frame, 'You said: hello').waitFor()
    expect(await opened.frame.locator('.user').count()).toBe(1)
    expect((await opened.said()).filter(({ type }) => type === 'error')).toEqual([])
  })
})
