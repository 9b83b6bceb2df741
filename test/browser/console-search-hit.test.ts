/** Tests that a conversation opened from a search shows and marks the message that the search has found. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { KEEPER, runTurn } from '../support/storing-chat.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

/** Starts a service with a conversation whose matching message is 240 items before its end. */
async function startLongConversation() {
  const app = await startApp()
  const { agent_key: key } = await app.createAgent(KEEPER)
  const { conversation } = await runTurn(app, key, 'Is the *zeppelin* late? Zeppelins are slow.')
  for (let batch = 0; batch < 12; batch++) {
    const texts = Array.from({ length: 20 }, (_, index) => `Message ${batch * 20 + index + 1}.`)
    await addMessages(app, conversation, texts)
  }
  return { app, conversation }
}

async function addMessages(app: TestApp, conversation: string, texts: readonly string[]): Promise<void> {
  const items = texts.map((content) => ({ type: 'message', role: 'user', content }))
  const { status, text } = await app.call('POST', `/v1/conversations/${conversation}/items`, {
    body: { items },
  })
  if (status !== 200) throw new Error(text)
}

/** Returns whether the marked message is inside the visible part of the transcript. */
function isMatchVisible(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const box = document.querySelector('[data-match]')?.getBoundingClientRect()
    const area = document.querySelector('.desk-transcript')?.getBoundingClientRect()
    return box !== undefined && area !== undefined && box.top >= area.top && box.bottom <= area.bottom
  })
}

/** Lists the marked words of the found message. */
function listMarked(page: Page): Promise<string[]> {
  return page.evaluate(() => [...(CSS.highlights.get('search-hit') ?? [])].map((range) => range.toString()))
}

const isFocused = (page: Page) =>
  page.evaluate(() => document.activeElement?.hasAttribute('data-match') ?? false)

test('a search hit far up in a long conversation is scrolled to, focused and marked', async () => {
  const { app, conversation } = await startLongConversation()
  const { page, complaints } = await openConsole(app, browser, '/conversations', { width: 1440 })
  await page.getByRole('textbox', { name: 'Search conversations' }).fill('zeppelin')
  const row = page.getByRole('list', { name: 'Conversations' }).getByRole('listitem')
  await row.locator('mark', { hasText: 'zeppelin' }).first().waitFor()
  await page.keyboard.press('Escape')
  await page.locator('h1').click()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  const match = page.locator('article[data-match]')
  await match.getByText('Search result').waitFor()
  expect(await match.innerText()).toContain('Is the *zeppelin* late?')
  await expect.poll(() => isFocused(page)).toBe(true)
  await expect.poll(() => isMatchVisible(page)).toBe(true)
  expect(await listMarked(page)).toEqual(['zeppelin', 'Zeppelin'])
  // The page explains the turn of the message.
  await page.getByRole('button', { name: 'Turn 1 · Why', pressed: true }).waitFor()
  await expectView(page, 'conversation-search-hit')

  // A new message does not move the reader away.
  await addMessages(app, conversation, ['One more message.'])
  await page.getByText('One more message.').waitFor({ state: 'attached' })
  expect(await isMatchVisible(page)).toBe(true)

  await page.reload()
  await expect.poll(() => isFocused(page)).toBe(true)
  expect(await isMatchVisible(page)).toBe(true)
  await page.getByRole('textbox', { name: 'Search conversations' }).fill('')
  await match.waitFor({ state: 'detached' })
  expect(new URL(page.url()).search).toBe('')
  expect(complaints).toEqual([])
})

test('words in an answer with Markdown are marked', async () => {
  const app = await startApp()
  const { agent_key: key } = await app.createAgent(KEEPER)
  const { conversation } = await runTurn(app, key, 'The **airship** is here.')
  const { body } = await app.call('GET', `/v1/conversations/${conversation}/items?order=asc`)
  const answer = body.data.at(-1).id
  const { page } = await openConsole(app, browser, `/conversations/${conversation}?q=airship&item=${answer}`)
  await expect.poll(() => listMarked(page)).toEqual(['airship'])
  expect(await isFocused(page)).toBe(true)
})

test('a conversation opens at its end if it does not contain the message in the URL', async () => {
  const { app, conversation } = await startLongConversation()
  const { page } = await openConsole(
    app,
    browser,
    `/conversations/${conversation}?q=zeppelin&item=msg_deleted`,
  )
  await page.getByText('Message 1.', { exact: true }).waitFor({ state: 'attached' })
  await page.getByText('Message 240.', { exact: true }).waitFor()
  await expect
    .poll(() =>
      page
        .locator('.desk-transcript')
        .evaluate((area) => area.scrollHeight - area.scrollTop - area.clientHeight),
    )
    .toBeLessThan(5)
  expect(await page.locator('[data-match]').count()).toBe(0)
})
