/** Tests that a conversation survives a page reload. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type FrameHarness,
  type OpenFrame,
  openFrameHarness,
  plainOptions,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

const stored = ({ frame }: OpenFrame) => frame.evaluate(() => ({ ...localStorage }))

/** Leaves the page and opens it in a new tab of the same browser context. */
async function again(opened: OpenFrame, more: Parameters<FrameHarness['open']>[0] = {}): Promise<OpenFrame> {
  await opened.page.goto('about:blank')
  return harness.open({ beside: opened, isSameSite: true, ...more })
}

describe('a conversation', () => {
  test('survives a reload, is stored without the key and is not shown for a different agent', async () => {
    const opened = await harness.open({ isSameSite: true })
    await opened.say('remember this')
    await visibleText(opened.frame, 'You said: remember this').waitFor()
    await opened.settle()
    const reloaded = await again(opened)
    await visibleText(reloaded.frame, 'You said: remember this').waitFor()
    const kept = await stored(reloaded)
    expect(Object.keys(kept)).toEqual([`parley-history ${harness.agent.agent_key.slice(0, 21)}`])
    expect(JSON.stringify(kept)).not.toContain(harness.agent.agent_key.slice(21, 40))
    const other = await harness.app.createAgent()
    const elsewhere = await again(reloaded, { key: other.agent_key })
    await elsewhere.frame.getByRole('heading', { name: 'Greeter' }).waitFor()
    expect(await elsewhere.frame.locator('article.user').count()).toBe(0)
  })

  test('keeps the received part of a reply that a reload interrupted', async () => {
    const opened = await harness.open({ isSameSite: true })
    await opened.say(
      '[[delay:100]] one two three four five six seven eight nine ten eleven twelve thirteen fourteen',
    )
    await opened.frame.locator('article.reply', { hasText: 'You said: one two' }).waitFor()
    const reloaded = await again(opened)
    await visibleText(reloaded.frame, 'was interrupted when the page was reloaded').waitFor()
    await visibleText(reloaded.frame, 'You said: one two').waitFor()
    await reloaded.frame.getByRole('button', { name: 'Try again' }).click()
    await reloaded.frame.getByText('ten eleven twelve').nth(1).waitFor()
  })

  test('is removed from storage when the page disables history', async () => {
    const opened = await harness.open({ isSameSite: true })
    await opened.say('forget this')
    await opened.settle()
    await expect.poll(async () => JSON.stringify(await stored(opened))).toContain('forget this')
    const reloaded = await again(opened, { options: { history: false } })
    await visibleText(reloaded.frame, 'Hello! I am').waitFor()
    await expect.poll(() => stored(reloaded)).toEqual({})
    expect(await reloaded.frame.locator('article.user').count()).toBe(0)
    await reloaded.say('and this')
    await reloaded.settle()
    await reloaded.page.goto('about:blank')
    const last = await again(reloaded)
    expect(await stored(last)).toEqual({})
  })

  test('is kept only in memory when the browser blocks storage', async () => {
    const opened = await harness.open()
    await opened.say('in memory')
    await visibleText(opened.frame, 'You said: in memory').waitFor()
    const reloaded = await again(opened, { isSameSite: false })
    await visibleText(reloaded.frame, 'Hello! I am').waitFor()
    expect(await reloaded.frame.locator('article.user').count()).toBe(0)
    expect(reloaded.complaints).toEqual([])
  })

  test('continues in memory when storage is full and contains invalid data', async () => {
    const opened = await harness.open({ isSameSite: true })
    await opened.frame.evaluate(
      (name) => {
        localStorage.setItem(name, '{"version":99,"entries":[{"kind":"user"}]}')
        for (let size = 1 << 20; size > 0; size >>= 1) {
          try {
            for (let count = 0; ; count++) localStorage.setItem(`${size}-${count}`, 'x'.repeat(size))
          } catch {}
        }
      },
      `parley-history ${harness.agent.agent_key.slice(0, 21)}`,
    )
    const reloaded = await again(opened)
    await reloaded.say('still here')
    await visibleText(reloaded.frame, 'You said: still here').waitFor()
    await reloaded.settle()
    await reloaded.say('and here')
    await visibleText(reloaded.frame, 'You said: and here').waitFor()
    expect(reloaded.complaints).toEqual([])
  })

  test('is visible only to the user who started it', async () => {
    const opened = await harness.open({ isSameSite: true, options: { user: 'ada' } })
    await opened.say('of ada')
    await opened.settle()
    const grace = await again(opened, { options: { user: 'grace' } })
    await visibleText(grace.frame, 'Hello! I am').waitFor()
    expect(await grace.frame.locator('article.user').count()).toBe(0)
    const ada = await again(grace, { options: { user: 'ada' } })
    await visibleText(ada.frame, 'You said: of ada').waitFor()
  })

  test('is deleted for all users on logout', async () => {
    const grace = await harness.open({ isSameSite: true, options: { user: 'grace' } })
    await grace.say('of grace')
    await grace.settle()
    const opened = await again(grace, { options: { user: 'ada' } })
    await opened.say('of ada')
    await opened.settle()
    const readStored = async () => JSON.stringify(await stored(opened))
    await expect.poll(readStored).toContain('of ada')
    expect(await readStored()).toContain('of grace')
    await opened.post({ type: 'configure', options: { ...plainOptions, apiKey: harness.agent.agent_key } })
    await opened.post({ type: 'logout' })
    await expect.poll(() => opened.frame.locator('article.user').count()).toBe(0)
    await expect.poll(() => stored(opened)).toEqual({})
  })

  test('is shared by two open tabs', async () => {
    const one = await harness.open({ isSameSite: true })
    const other = await harness.open({ beside: one, isSameSite: true })
    await one.say('in the first tab')
    await visibleText(other.frame, 'You said: in the first tab').waitFor()
    await other.say('in the second tab')
    await visibleText(one.frame, 'You said: in the second tab').waitFor()
    await other.page.close()
    const reloaded = await again(one)
    await visibleText(reloaded.frame, 'You said: in the first tab').waitFor()
    await visibleText(reloaded.frame, 'You said: in the second tab').waitFor()
  })
})
