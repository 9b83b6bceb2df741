/** Tests the widget frame with another server's chat API that the operator has allowed. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openApp, type TestApp } from '../support/app.ts'
import { type FrameHarness, openFrameHarness, visibleText } from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let other: TestApp
let harness: FrameHarness
beforeAll(async () => {
  other = await openApp()
  harness = await openFrameHarness({
    PARLEY_WIDGET_CONNECT_ORIGINS: other.url,
    PARLEY_WIDGET_ALLOW_PROVIDER_KEY: 'true',
  })
})
afterAll(async () => {
  await harness?.close()
  await other?.close()
})

test("the widget sends messages to the configured endpoint with the page's headers and key", async () => {
  const options = {
    endpoint: `${other.url}/v1/chat/completions`,
    providerApiKey: other.key,
    headers: { 'X-Request-Id': 'from-the-page' },
  }
  const opened = await harness.open({ key: null, options })
  const request = opened.page.waitForRequest(
    (one) => one.url() === options.endpoint && one.method() === 'POST',
  )
  await opened.say('over there')
  await visibleText(opened.frame, 'You said: over there').waitFor()
  await opened.settle()
  expect((await request).headers()).toMatchObject({
    authorization: `Bearer ${other.key}`,
    'x-request-id': 'from-the-page',
  })
  await opened.say('[[break:4]] one two three four five six')
  await visibleText(opened.frame, 'was lost before').waitFor()
  expect(opened.requests.filter((url) => url.includes('/trpc/'))).toEqual([])
})

test('the widget reports a key that the configured endpoint rejects', async () => {
  const options = { endpoint: `${other.url}/v1/chat/completions`, providerApiKey: 'sk-wrong' }
  const opened = await harness.open({ key: null, options })
  await opened.say('hello')
  await opened.frame.getByText('its key is invalid').first().waitFor()
  await expect
    .poll(opened.said)
    .toContainEqual(expect.objectContaining({ type: 'error', code: 'invalid_api_key' }))
})
