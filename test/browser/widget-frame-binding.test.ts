/** Tests that the widget frame uses only the key of the agent whose id is in the frame's URL. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type FrameHarness,
  type HostPage,
  openFrameHarness,
  plainOptions,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
let lockedKey: string
beforeAll(async () => {
  harness = await openFrameHarness()
  const yaml = 'name: Locked\ninstructions: Help.\nembed: { origins: [https://shop.example] }\n'
  lockedKey = (await harness.app.createAgent(yaml)).agent_key
})
afterAll(() => harness?.close())

/** Opens the frame at `address` on a page whose origin the locked agent does not allow. */
async function openUnlisted(address: string, options: object) {
  const page = await (await harness.browser.newContext()).newPage()
  const authorized: string[] = []
  page.on('request', (request) => {
    if (request.headers().authorization !== undefined) authorized.push(request.url())
  })
  const refused = page.waitForEvent('console', (message) => message.text().includes('frame-ancestors'))
  await page.goto(harness.hostUrl)
  await page.evaluate(
    (given) => {
      void (globalThis as unknown as HostPage).connect(given)
    },
    { options: { ...plainOptions, ...options }, tools: [], address },
  )
  return { page, authorized, refused }
}

describe('on an origin that the agent does not allow', () => {
  test.each([
    ['no key', () => ''],
    ["another agent's key", () => harness.agent.agent_key.slice(0, 21)],
  ])('a frame with %s in its URL does not send requests with the agent key', async (_case, addressOf) => {
    const opened = await openUnlisted(addressOf(), { apiKey: lockedKey })
    await opened.refused
    expect(opened.authorized).toEqual([])
    await opened.page.close()
  })
})

test("the `headers` option cannot set an agent key for Parley's own server", async () => {
  const opened = await harness.open({
    key: null,
    options: {
      endpoint: `${harness.app.url}/v1/chat/completions`,
      headers: { authorization: `Bearer ${lockedKey}` },
    },
  })
  await visibleText(opened.frame, 'does not provide an agent key').waitFor()
  const said = await opened.said()
  expect(said).toContainEqual(
    expect.objectContaining({
      code: 'invalid_option',
      message: expect.stringContaining('headers: `Authorization`'),
    }),
  )
  expect(JSON.stringify(said)).not.toContain(lockedKey)
})

test('the widget does not use a parent key and warns the page that it is a secret', async () => {
  const opened = await harness.open({ key: harness.app.key })
  await visibleText(opened.frame, 'its key is invalid').waitFor()
  await expect.poll(opened.said).toContainEqual({
    type: 'error',
    code: 'invalid_api_key',
    reason: 'invalid_api_key',
    message: expect.stringContaining('A parent key is a secret'),
  })
  expect(opened.complaints).toEqual([expect.stringContaining('A parent key is a secret')])
  expect(opened.requests.filter((url) => url.includes('/trpc/'))).toEqual([])
})

test.each([
  ['a line break in a header', { 'X-A': 'a\r\nb' }, 'headers: `X-A` has an invalid name or value'],
  ['a header that browsers set', { Cookie: 'a=b' }, 'headers: `Cookie` has an invalid name or value'],
])('the widget reports %s to the page', async (_case, headers, message) => {
  const opened = await harness.open({ options: { endpoint: '/v1/chat/completions', headers } })
  await expect
    .poll(opened.said)
    .toContainEqual(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringContaining(message) }),
    )
  await opened.say('still works')
  await visibleText(opened.frame, 'You said: still works').waitFor()
})

test('the widget reports to the page that the `headers` option requires an `endpoint`', async () => {
  const opened = await harness.open({ options: { headers: { 'X-A': 'b' } } })
  await expect
    .poll(opened.said)
    .toContainEqual(expect.objectContaining({ message: expect.stringContaining('headers: set `endpoint`') }))
})
