/** Tests the errors that the widget frame reports to the user and to the page. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type FrameHarness, openFrameHarness, visibleText } from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

describe('a chat that cannot be used', () => {
  test.each([
    ['without a key', { key: null }, 'does not provide an agent key', 'missing_api_key'],
    ['with an unknown key', { key: `agnt_key-${'a'.repeat(61)}` }, 'its key is invalid', 'invalid_api_key'],
    [
      'with the key of another agent',
      { options: { agentId: 'agent-other' } },
      'another agent',
      'agent_mismatch',
    ],
    [
      'with an endpoint that is not allowed',
      { options: { endpoint: 'https://example.com/v1/chat/completions' } },
      'cannot connect to the server',
      'endpoint_not_allowed',
    ],
    [
      'with a provider key that is not allowed',
      { options: { providerApiKey: 'sk-secret' } },
      'does not allow provider keys',
      'provider_key_not_allowed',
    ],
  ] as const)('shows the reason to the user and the page (%s)', async (how, options, words, code) => {
    const opened = await harness.open(options)
    await visibleText(opened.frame, words).waitFor()
    expect(await opened.frame.locator('textarea').isDisabled()).toBe(true)
    // `toContainEqual` would accept more fields with the value undefined.
    await expect
      .poll(async () => (await opened.said()).find(({ type }) => type === 'error'))
      .toStrictEqual({
        type: 'error',
        code,
        message: expect.stringContaining(words),
        reason: code,
        status: how === 'with an unknown key' ? 401 : undefined,
        requestId: how === 'with an unknown key' ? expect.stringMatching(/^[0-9a-f-]{36}$/) : undefined,
      })
    expect(JSON.stringify(await opened.said())).not.toContain('sk-secret')
    expect(opened.requests.filter((url) => url.includes('example.com'))).toEqual([])
  })

  test('reloads when the page sets a different key', async () => {
    const opened = await harness.open({ key: null })
    await visibleText(opened.frame, 'does not provide an agent key').waitFor()
    const options = { theme: 'light', primaryColor: '#000', debug: false, history: true, isInline: false }
    const reloaded = opened.page.waitForRequest((one) => one.url().includes('/embed/frame?key=agnt_key-'))
    await opened.post({ type: 'configure', options: { ...options, apiKey: harness.agent.agent_key } })
    await reloaded
  })
})

describe('a chat message', () => {
  test.each([
    ['[[error:500]]', 'not available right now', 'chat_failed'],
    ['[[error:400]]', 'could not be processed', 'chat_failed'],
    ['[[error:429]]', 'too many messages', 'rate_limited'],
    ['[[break:4]] one two three four five six', 'was lost before', 'chat_failed'],
  ])('that fails is reported to the user and the page (%s)', async (text, words, code) => {
    const opened = await harness.open()
    await opened.say(text)
    await opened.frame.getByText(words).first().waitFor()
    await opened.frame.getByRole('button', { name: 'Try again' }).waitFor()
    expect(await opened.said()).toContainEqual(expect.objectContaining({ type: 'error', code }))
    if (text.includes('break')) expect((await opened.replies()).at(-1)).toContain('You said: one')
  })

  test('that was sent offline is sent again when the browser is online', async () => {
    const opened = await harness.open()
    await visibleText(opened.frame, 'Hello! I am').waitFor()
    await opened.page.context().setOffline(true)
    await opened.frame.locator('.offline').waitFor()
    await opened.say('are you there')
    await visibleText(opened.frame, 'As soon as the connection is back').waitFor()
    await opened.page.context().setOffline(false)
    await visibleText(opened.frame, 'You said: are you there').waitFor()
    expect(await opened.frame.locator('.offline').count()).toBe(0)
    expect(await opened.frame.locator('.failure').count()).toBe(0)
  })

  test('is not sent if the page context is too large', async () => {
    const opened = await harness.open({
      context: { page: 'x'.repeat(65_000) },
      options: { system: 'y'.repeat(1000) },
    })
    await opened.say('hello')
    await visibleText(opened.frame, 'too much information').waitFor()
    expect(await opened.frame.locator('textarea').inputValue()).toBe('hello')
    expect(opened.requests.filter((url) => url.includes('chat.stream'))).toEqual([])
    await opened.post({ type: 'context', context: { page: 'short' } })
    const request = opened.page.waitForRequest((one) => one.url().includes('chat.stream'))
    await opened.frame.locator('textarea').press('Enter')
    const sent = JSON.parse((await request).postData() ?? '')[0].json
    expect(sent.messages).toMatchObject([
      {
        role: 'user',
        content: expect.stringMatching(/^\[Context provided by the page, not by the user\][\s\S]*"short"/),
      },
      { role: 'user', content: 'hello' },
    ])
  })
})

test('a rate-limited chat shows a countdown until the message can be sent again', async () => {
  const limited = await openFrameHarness({ PARLEY_RATE_LIMIT_AGENT: '2' })
  try {
    const opened = await limited.open()
    await visibleText(opened.frame, 'Hello! I am').waitFor()
    await opened.say('one')
    await visibleText(opened.frame, 'You said: one').waitFor()
    await opened.settle()
    await opened.say('two')
    const note = opened.frame.locator('.failure')
    await note.getByText(/Try again in \d+ seconds?/).waitFor()
    const seconds = async () => Number(/in (\d+)/.exec(await note.innerText())?.[1] ?? 0)
    const first = await seconds()
    expect(first).toBeGreaterThan(0)
    expect(first).toBeLessThanOrEqual(60)
    expect(await opened.frame.getByRole('button', { name: 'Try again' }).isDisabled()).toBe(true)
    await expect.poll(seconds, { timeout: 20_000 }).toBeLessThan(first)
  } finally {
    await limited.close()
  }
})
