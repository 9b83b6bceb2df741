/** Tests the questions that the widget suggests after an answer, which the agent's definition enables. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import {
  type FrameHarness,
  helper,
  keeper,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

const enabled = (yaml: string) => yaml.replace('embed:\n', 'embed:\n  followUps: true\n')

/** Opens a visible frame of an agent with this definition. */
async function openWith(yaml: string): Promise<OpenFrame> {
  const { agent_key: key } = await harness.app.createAgent(yaml)
  const opened = await harness.open({ key, isSameSite: true })
  await opened.post({ type: 'visibility', isOpen: true })
  return opened
}

const suggestion = ({ frame }: OpenFrame) =>
  frame.getByRole('list', { name: 'Suggestions' }).getByText('How does this work?')

/** Returns the bodies of all chat requests that follow. */
function watchChats({ page }: OpenFrame): readonly string[] {
  const bodies: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('chat.stream')) bodies.push(request.postData() ?? '')
  })
  return bodies
}

describe.each([
  ['in the browser', helper],
  ['on the server', keeper],
])('with conversations stored %s', (_place, yaml) => {
  test('suggested questions follow an answer, and a click sends one', async () => {
    const opened = await openWith(enabled(yaml))
    await opened.say('hello')
    await suggestion(opened).waitFor()
    expect(await listAxeFaults(opened.frame)).toEqual([])
    await suggestion(opened).click()
    await visibleText(opened.frame, 'You said: How does this work?').waitFor()
    await suggestion(opened).waitFor()
    expect(await opened.frame.getByRole('list', { name: 'Suggestions' }).count()).toBe(1)
    expect(await opened.frame.locator('article.user').count()).toBe(2)
    expect(opened.complaints).toEqual([])
  })

  test('the request for suggestions is not part of the conversation', async () => {
    const opened = await openWith(enabled(yaml))
    const bodies = watchChats(opened)
    await opened.say('hello')
    await suggestion(opened).waitFor()
    expect(bodies.filter((body) => body.includes('Suggest three short questions'))).toHaveLength(1)
    expect(bodies.find((body) => body.includes('Suggest three'))).toContain('"store":false')
    await opened.say('and now')
    await visibleText(opened.frame, 'You said: and now').waitFor()
    await suggestion(opened).waitFor()
    expect(bodies.at(-1)).toContain('You said: hello')
    expect(bodies.at(-1)?.split('Suggest three')).toHaveLength(2)
    expect(await opened.frame.getByText('Suggest three').count()).toBe(0)
  })
})

test('the widget requests no suggestions unless the definition enables them', async () => {
  const opened = await openWith(helper)
  const bodies = watchChats(opened)
  await opened.say('hello')
  await visibleText(opened.frame, 'You said: hello').waitFor()
  await opened.settle()
  await opened.say('and now')
  await visibleText(opened.frame, 'You said: and now').waitFor()
  expect(bodies).toHaveLength(2)
})

test('an answer stays complete if the request for suggestions fails', async () => {
  const opened = await openWith(enabled(helper))
  await opened.page.route('**/trpc/chat.stream*', (route) =>
    route.request().postData()?.includes('Suggest three') ? route.abort() : route.continue(),
  )
  const failed = opened.page.waitForEvent('requestfailed')
  await opened.say('hello')
  await failed
  await visibleText(opened.frame, 'You said: hello').waitFor()
  expect(await opened.frame.locator('.failure').count()).toBe(0)
  await opened.say('and now')
  await visibleText(opened.frame, 'You said: and now').waitFor()
})

test('the actions of the newest answer remain visible above the suggestions', async () => {
  const opened = await openWith(enabled(helper))
  await opened.say('hello')
  await suggestion(opened).waitFor()
  await opened.page.mouse.move(0, 0)
  const copy = opened.frame.locator('.reply').last().getByRole('button', { name: 'Copy answer' })
  const opacity = () => copy.evaluate((button) => getComputedStyle(button.parentElement as Element).opacity)
  await expect.poll(opacity).toBe('1')
  expect(await suggestion(opened).isVisible()).toBe(true)
})
