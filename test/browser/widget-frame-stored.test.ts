/** Tests conversations that the server stores, in the widget frame. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type FrameHarness,
  keeper,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness({}, keeper)
})
afterAll(() => harness?.close())

const stored = ({ frame }: OpenFrame) => frame.evaluate(() => ({ ...localStorage }))

/** Opens a frame whose window is visible. */
async function open(options: Parameters<FrameHarness['open']>[0] = {}): Promise<OpenFrame> {
  const opened = await harness.open({ isSameSite: true, ...options })
  await opened.post({ type: 'visibility', isOpen: true })
  return opened
}

/** Closes the page and opens it again in the same browser context. */
async function reload(opened: OpenFrame, more: Parameters<FrameHarness['open']>[0] = {}): Promise<OpenFrame> {
  await opened.page.goto('about:blank')
  return open({ beside: opened, ...more })
}

/** A message whose answer takes a few seconds. */
const slow = '[[delay:120]] one two three four five six seven eight nine ten eleven twelve the end'
const whole = 'You said: one two three four five six seven eight nine ten eleven twelve the end'

const textsOf = async ({ frame }: OpenFrame) =>
  frame.locator('article .bubble, article .prose').allInnerTexts()

describe('a stored conversation', () => {
  test('is on the server: the browser stores only the token and the id', async () => {
    const opened = await open()
    await opened.say('a secret word')
    await visibleText(opened.frame, 'You said: a secret word').waitFor()
    await opened.settle()
    const kept = await stored(opened)
    expect(Object.keys(kept)).toEqual([`parley-visitor ${harness.agent.agent_key.slice(0, 21)}`])
    expect(JSON.parse(Object.values(kept)[0] ?? '')).toEqual({
      token: expect.stringMatching(/^vst_/),
      conversation: expect.stringMatching(/^conv_/),
    })
    expect(opened.complaints).toEqual([])
  })

  test('continues its answer after a reload in the middle', async () => {
    const opened = await open()
    await opened.say(slow)
    await opened.frame.locator('article.reply', { hasText: 'You said: one two' }).waitFor()
    const reloaded = await reload(opened)
    await visibleText(reloaded.frame, whole).waitFor()
    await reloaded.settle()
    expect(await textsOf(reloaded)).toEqual(['Hello! I am here.', slow, whole])
    expect(reloaded.complaints).toEqual([])
  })
})
