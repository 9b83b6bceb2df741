/**
 * Tests what the visitor can do with messages in the widget frame: change, remove, repeat, copy and share
 * them.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { type FrameHarness, type OpenFrame, openFrameHarness, visibleText } from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

async function askAll(opened: OpenFrame, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    await opened.say(text)
    await visibleText(opened.frame, `You said: ${text}`).waitFor()
    await opened.settle()
  }
}

/** Runs `act`; returns the messages that the next request to the model contains. */
async function sentWith(opened: OpenFrame, act: () => Promise<void>): Promise<unknown[]> {
  const request = opened.page.waitForRequest('**/trpc/chat.stream*')
  await act()
  return JSON.parse((await request).postData() ?? '')[0].json.messages
}

const questions = ({ frame }: OpenFrame) => frame.locator('article.user .bubble').allTextContents()

describe("a visitor's message", () => {
  test('can be edited with the keyboard, and sending the edit removes all later messages', async () => {
    const opened = await harness.open()
    await askAll(opened, 'first', 'second', 'third')
    await opened.frame.getByRole('button', { name: 'Edit message' }).nth(1).press('Enter')
    const editor = opened.frame.getByRole('textbox', { name: 'Edit your message' })
    await visibleText(opened.frame, 'Sending it again removes the messages below.').waitFor()
    const sent = await sentWith(opened, async () => {
      await opened.page.keyboard.type(' and a half')
      await editor.press('Enter')
    })
    expect(sent).toEqual([
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'You said: first' },
      { role: 'user', content: 'second and a half' },
    ])
    await opened.settle()
    expect(await questions(opened)).toEqual(['first', 'second and a half'])
    expect(opened.complaints).toEqual([])
  })

  test('stays unchanged when the visitor cancels editing with Escape, which does not close the window', async () => {
    const opened = await harness.open()
    await askAll(opened, 'keep me')
    await opened.frame.getByRole('button', { name: 'Edit message' }).click()
    const editor = opened.frame.getByRole('textbox', { name: 'Edit your message' })
    await editor.fill('something else')
    await editor.press('Escape')
    await opened.frame.locator('article.user .action:focus').waitFor()
    expect(await questions(opened)).toEqual(['keep me'])
    expect((await opened.said()).filter(({ type }) => type === 'close')).toEqual([])
  })

  test('can be removed with its answer, which the model then no longer receives', async () => {
    const opened = await harness.open()
    await askAll(opened, 'first', 'second')
    await opened.frame.getByRole('button', { name: 'Remove message' }).first().click()
    await opened.frame.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
    await expect.poll(() => questions(opened)).toEqual(['second'])
    expect(await sentWith(opened, () => opened.say('third'))).toEqual([
      { role: 'user', content: 'second' },
      { role: 'assistant', content: 'You said: second' },
      { role: 'user', content: 'third' },
    ])
  })

  test('that failed is not sent with later messages', async () => {
    const opened = await harness.open()
    await opened.page.route('**/trpc/chat.stream*', (route) => route.abort(), { times: 1 })
    await opened.say('lost')
    await visibleText(opened.frame, 'The server cannot be reached.').waitFor()
    expect(await sentWith(opened, () => opened.say('found'))).toEqual([{ role: 'user', content: 'found' }])
    await visibleText(opened.frame, 'You said: found').waitFor()
    expect(await questions(opened)).toEqual(['lost', 'found'])
  })

  test('shows its time, and follows a date separator if it is from a different day', async () => {
    const opened = await harness.open({ isSameSite: true })
    await askAll(opened, 'now')
    expect(await opened.frame.locator('.day').count()).toBe(0)
    expect(await opened.frame.locator('article.user time').innerText()).toMatch(/^\d{1,2}:\d\d.(AM|PM)$/)
    await opened.frame.waitForFunction(() => localStorage.length > 0)
    await opened.frame.evaluate(() => {
      const [name = ''] = Object.keys(localStorage)
      const yesterday = (text: string) => `"atMs":${Number(text.slice(7)) - 86_400_000}`
      const stored = localStorage.getItem(name)?.replaceAll(/"atMs":\d+/g, yesterday) ?? ''
      localStorage.setItem(name, stored)
    })
    const reopened = await harness.open({ beside: opened, isSameSite: true })
    await reopened.frame.locator('.day', { hasText: 'Yesterday' }).waitFor()
    await askAll(reopened, 'again')
    expect(await reopened.frame.locator('.day').allInnerTexts()).toEqual(['Yesterday', 'Today'])
  })
})

describe('an answer', () => {
  test('that is generated again has versions to page through, and the model receives the visible one', async () => {
    const opened = await harness.open()
    let count = 0
    await opened.page.route('**/trpc/chat.stream*', async (route) => {
      count += 1
      const body = route.request().postData()?.replace('"Which one?"', `"Version ${count}"`) ?? ''
      await route.continue({ postData: body })
    })
    await opened.say('Which one?')
    await visibleText(opened.frame, 'You said: Version 1').waitFor()
    for (const number of [2, 3]) {
      await opened.settle()
      await opened.frame.getByRole('button', { name: 'Answer again' }).click()
      await visibleText(opened.frame, `You said: Version ${number}`).waitFor()
    }
    await opened.settle()
    const pager = opened.frame.getByRole('group', { name: 'Answer 3 of 3' })
    expect((await pager.innerText()).trim()).toBe('3 / 3')
    await pager.getByRole('button', { name: 'Previous answer' }).click()
    await visibleText(opened.frame, 'You said: Version 2').waitFor()
    await opened.frame.getByRole('group', { name: 'Answer 2 of 3' }).waitFor()
    expect(await listAxeFaults(opened.frame)).toEqual([])
    await opened.page.unroute('**/trpc/chat.stream*')
    expect(await sentWith(opened, () => opened.say('next'))).toEqual([
      { role: 'user', content: 'Which one?' },
      { role: 'assistant', content: 'You said: Version 2' },
      { role: 'user', content: 'next' },
    ])
  })

  test('keeps its versions after a reload', async () => {
    const opened = await harness.open({ isSameSite: true })
    await askAll(opened, 'again')
    await opened.frame.getByRole('button', { name: 'Answer again' }).click()
    await opened.frame.getByRole('group', { name: 'Answer 2 of 2' }).waitFor()
    await opened.settle()
    await opened.frame.waitForFunction(() => JSON.stringify(localStorage).includes('versions'))
    const reopened = await harness.open({ beside: opened, isSameSite: true })
    await reopened.frame.getByRole('group', { name: 'Answer 2 of 2' }).waitFor()
  })

  test('has highlighted code, and the highlighter loads only when an answer contains code', async () => {
    const opened = await harness.open()
    const chunks = () => opened.requests.filter((url) => url.includes('/embed/chunk-'))
    await askAll(opened, 'plain words')
    expect(chunks()).toEqual([])
    await opened.say('look:\n\n```js\nconst greeting = "hi" // <b>\n```')
    await opened.frame.locator('.code-keyword', { hasText: 'const' }).waitFor()
    expect(await opened.frame.locator('.code-string').innerText()).toBe('"hi"')
    expect(await opened.frame.locator('pre').innerText()).toBe('const greeting = "hi" // <b>\n')
    expect(await opened.frame.locator('pre b').count()).toBe(0)
    expect(chunks()).toHaveLength(1)
    expect(await listAxeFaults(opened.frame)).toEqual([])
    expect(opened.complaints).toEqual([])
  })

  test('has no Insert or Share button if the page does not handle that action', async () => {
    const opened = await harness.open({ options: { given: [] } })
    await askAll(opened, 'hello')
    const names = await opened.frame
      .locator('article.reply')
      .last()
      .getByRole('button')
      .evaluateAll((all) => all.map((button) => button.getAttribute('aria-label')))
    expect(names).toEqual(['Copy answer', 'Answer again'])
    await opened.page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await opened.frame.getByRole('button', { name: 'More actions' }).click()
    await opened.frame.getByRole('menuitem', { name: 'Copy conversation' }).click()
    await expect
      .poll(() => opened.page.evaluate(() => navigator.clipboard.readText()))
      .toContain('You said:\nhello')
  })

  test('is shared through the browser if the page does not handle sharing', async () => {
    const opened = await harness.open({ options: { given: [] } })
    await askAll(opened, 'hello')
    await opened.frame.evaluate(() => {
      const shared: unknown[] = []
      Object.assign(globalThis, { shared })
      Object.defineProperty(navigator, 'canShare', { value: () => true })
      Object.defineProperty(navigator, 'share', { value: async (data: unknown) => shared.push(data) })
    })
    await askAll(opened, 'share this')
    await opened.frame.getByRole('button', { name: 'Share', exact: true }).last().click()
    await opened.frame.getByRole('button', { name: 'Shared' }).waitFor()
    expect(
      await opened.frame.evaluate(() => (globalThis as unknown as { shared: unknown[] }).shared),
    ).toEqual([{ text: 'You said: share this' }])
    expect((await opened.said()).filter(({ type }) => type === 'share')).toEqual([])
  })
})
