/** Tests that a conversation survives a page reload. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type FrameStand,
  type OpenFrame,
  openFrameStand,
  plainOptions,
  shown,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let stand: FrameStand
beforeAll(async () => {
  stand = await openFrameStand()
})
afterAll(() => stand?.close())

const stored = ({ frame }: OpenFrame) => frame.evaluate(() => ({ ...localStorage }))

/** Closes the page and opens it again in the same browser context. */
async function again(opened: OpenFrame, more: Parameters<FrameStand['open']>[0] = {}): Promise<OpenFrame> {
  await opened.page.goto('about:blank')
  return stand.open({ beside: opened, isSameSite: true, ...more })
}

describe('a conversation', () => {
  test('survives a reload, is stored without the key and is not shown for another agent', async () => {
    const opened = await stand.open({ isSameSite: true })
    await opened.say('remember this')
    await shown(opened.frame, 'You said: remember this').waitFor()
    await opened.settle()
    const reloaded = await again(opened)
    await shown(reloaded.frame, 'You said: remember this').waitFor()
    const kept = await stored(reloaded)
    expect(Object.keys(kept)).toEqual([`parley-history ${stand.agent.agent_key.slice(0, 21)}`])
    expect(JSON.stringify(kept)).not.toContain(stand.agent.agent_key.slice(21, 40))
    const other = await stand.app.createAgent()
    const elsewhere = await again(reloaded, { key: other.agent_key })
    await elsewhere.frame.getByRole('heading', { name: 'Greeter' }).waitFor()
    expect(await elsewhere.frame.locator('article.user').count()).toBe(0)
  })

  test('keeps the received part of a reply that a reload interrupted', async () => {
    const opened = await stand.open({ isSameSite: true })
    await opened.say(
      '[[delay:100]] one two three four five six seven eight nine ten eleven twelve thirteen fourteen',
    )
    await opened.frame.locator('article.reply', { hasText: 'You said: one two' }).waitFor()
    const reloaded = await again(opened)
    await shown(reloaded.frame, 'was interrupted when the page was reloaded').waitFor()
    await shown(reloaded.frame, 'You said: one two').waitFor()
    await reloaded.frame.getByRole('button', { name: 'Try again' }).click()
    await reloaded.frame.getByText('ten eleven twelve').nth(1).waitFor()
  })

  test('is removed from storage when the page disables history', async () => {
    const opened = await stand.open({ isSameSite: true })
    await opened.say('forget this')
    await opened.settle()
    const reloaded = await again(opened, { options: { history: false } })
    await shown(reloaded.frame, 'Hello! I am').waitFor()
    expect(await reloaded.frame.locator('article.user').count()).toBe(0)
    await reloaded.say('and this')
    await reloaded.settle()
    await reloaded.page.goto('about:blank')
    const last = await again(reloaded)
    expect(await stored(last)).toEqual({})
  })

  test('is kept in memory when the browser blocks storage', async () => {
    const opened = await stand.open()
    await opened.say('in memory')
    await shown(opened.frame, 'You said: in memory').waitFor()
    const reloaded = await again(opened, { isSameSite: false })
    await shown(reloaded.frame, 'Hello! I am').waitFor()
    expect(await reloaded.frame.locator('article.user').count()).toBe(0)
    expect(reloaded.complaints).toEqual([])
  })

  test('is kept in memory when storage is full or contains invalid data', async () => {
    const opened = await stand.open({ isSameSite: true })
    await opened.frame.evaluate(
      (name) => {
        localStorage.setItem(name, '{"version":99,"entries":[{"kind":"user"}]}')
        for (let size = 1 << 20; size > 0; size >>= 1) {
          try {
            for (let count = 0; ; count++) localStorage.setItem(`${size}-${count}`, 'x'.repeat(size))
          } catch {}
        }
      },
      `parley-history ${stand.agent.agent_key.slice(0, 21)}`,
    )
    const reloaded = await again(opened)
    await reloaded.say('still here')
    await shown(reloaded.frame, 'You said: still here').waitFor()
    await reloaded.settle()
    await reloaded.say('and here')
    await shown(reloaded.frame, 'You said: and here').waitFor()
    expect(reloaded.complaints).toEqual([])
  })

  test('is visible only to the user of the page who started it', async () => {
    const opened = await stand.open({ isSameSite: true, options: { user: 'ada' } })
    await opened.say('of ada')
    await opened.settle()
    const grace = await again(opened, { options: { user: 'grace' } })
    await shown(grace.frame, 'Hello! I am').waitFor()
    expect(await grace.frame.locator('article.user').count()).toBe(0)
    const ada = await again(grace, { options: { user: 'ada' } })
    await shown(ada.frame, 'You said: of ada').waitFor()
  })

  test('is deleted for all users on logout', async () => {
    const opened = await stand.open({ isSameSite: true, options: { user: 'ada' } })
    await opened.say('of ada')
    await opened.settle()
    await opened.post({ type: 'configure', options: { ...plainOptions, apiKey: stand.agent.agent_key } })
    await opened.post({ type: 'logout' })
    await expect.poll(() => opened.frame.locator('article.user').count()).toBe(0)
    await expect.poll(() => stored(opened)).toEqual({})
  })

  test('is shared by two open tabs', async () => {
    const one = await stand.open({ isSameSite: true })
    const other = await stand.open({ beside: one, isSameSite: true })
    await one.say('in the first tab')
    await shown(other.frame, 'You said: in the first tab').waitFor()
    await other.say('in the second tab')
    await shown(one.frame, 'You said: in the second tab').waitFor()
    await other.page.close()
    const reloaded = await again(one)
    await shown(reloaded.frame, 'You said: in the first tab').waitFor()
    await shown(reloaded.frame, 'You said: in the second tab').waitFor()
  })
})
