/** Tests conversations in the widget frame with a real service. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { expectOnly, type FrameHarness, openFrameHarness, visibleText } from '../support/widget-frame.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

describe('an empty chat', () => {
  test('shows the title, greetings and starters but does not send them to the model', async () => {
    const opened = await harness.open({ options: { welcomeMessage: 'Welcome!' } })
    const { frame } = opened
    await frame.getByRole('heading', { name: 'Helping hand' }).waitFor()
    await visibleText(frame, 'Welcome!').waitFor()
    await frame.locator('strong', { hasText: 'here' }).waitFor()
    expect(await frame.locator('textarea').getAttribute('placeholder')).toBe('Type a message...')
    await frame.getByRole('button', { name: 'What can you do?' }).click()
    await visibleText(frame, 'You said: What can you do?').waitFor()
    expect(await frame.getByText('Welcome!').count()).toBe(0)
    expect(await frame.locator('.starters').count()).toBe(0)
    const body = opened.page.waitForRequest((request) => request.url().includes('chat.stream'))
    await opened.settle()
    await opened.say('again')
    const sent = (await body).postData() ?? ''
    expect(sent).toContain('What can you do?')
    expect(sent).not.toContain('I am')
    expect(sent).not.toContain('Welcome!')
    expect(opened.complaints).toEqual([])
  })

  test('uses the title, texts and language that the page sets, even if they change later', async () => {
    const opened = await harness.open({ options: { title: 'Mine', greeting: 'Hi', placeholder: 'Go on' } })
    await opened.frame.getByRole('heading', { name: 'Mine' }).waitFor()
    await opened.say('keep this')
    await opened.settle()
    const options = { theme: 'dark', primaryColor: 'tomato', debug: false, history: true, isInline: true }
    const apiKey = harness.agent.agent_key
    await opened.post({ type: 'configure', options: { ...options, apiKey, title: 'Neu', language: 'de' } })
    await opened.frame.getByRole('heading', { name: 'Neu' }).waitFor()
    await opened.frame.getByRole('button', { name: 'Senden' }).waitFor()
    await visibleText(opened.frame, 'You said: keep this').waitFor()
    expect(await opened.frame.getByRole('button', { name: 'Chat schließen' }).count()).toBe(0)
    const root = await opened.frame.evaluate(() => {
      const { lang, dataset, style } = document.documentElement
      return { lang, theme: dataset.theme, accent: style.getPropertyValue('--accent') }
    })
    expect(root).toEqual({ lang: 'de', theme: 'dark', accent: '#ff6347' })
    await expect
      .poll(async () => (await opened.said()).filter(({ type }) => type === 'ready'))
      .toMatchObject([{ words: { open: 'Open chat' } }, { words: { open: 'Chat öffnen' } }])
  })
})

describe('a reply', () => {
  test('keeps the received text when it is stopped', async () => {
    const opened = await harness.open()
    await opened.say('[[delay:400]] one two three four five six seven eight nine ten eleven twelve thirteen')
    await opened.frame.locator('article.reply', { hasText: 'You said: one' }).waitFor()
    await opened.frame.getByRole('button', { name: 'Stop' }).click()
    await visibleText(opened.frame, 'You stopped this answer.').waitFor()
    const [, reply = ''] = await opened.replies()
    expect(reply).toContain('You said: one')
    expect(reply).not.toContain('thirteen')
    await opened.say('next')
    await visibleText(opened.frame, 'You said: next').waitFor()
  })

  test('can be retried after a failure, and “Answer again” replaces it', async () => {
    const opened = await harness.open()
    let failures = 1
    await opened.page.route('**/trpc/chat.stream*', (route) =>
      failures-- > 0 ? route.abort() : route.continue(),
    )
    await opened.say('hello')
    await visibleText(opened.frame, 'The server cannot be reached.').waitFor()
    await opened.frame.getByRole('button', { name: 'Try again' }).click()
    await visibleText(opened.frame, 'You said: hello').waitFor()
    await opened.settle()
    await opened.frame.getByRole('button', { name: 'Answer again' }).click()
    await opened.settle()
    expect(await opened.frame.locator('article.user').count()).toBe(1)
    expect((await opened.replies()).filter((text) => text.includes('You said: hello'))).toHaveLength(1)
  })

  test('is passed to the page only when the user shares or inserts it', async () => {
    const opened = await harness.open()
    await opened.say('a secret thought')
    await opened.settle()
    await opened.say('another one')
    await opened.settle()
    await expectOnly(opened, 'ready', 'mcp', 'message')
    expect(JSON.stringify(await opened.said())).not.toMatch(/secret|another/)
    await opened.frame.getByRole('button', { name: 'Insert into page' }).last().click()
    await opened.frame.getByRole('button', { name: 'Share', exact: true }).first().click()
    await opened.frame.getByRole('button', { name: 'More actions' }).click()
    await opened.frame.getByRole('menuitem', { name: 'Share conversation' }).click()
    await expect
      .poll(async () => (await opened.said()).filter(({ type }) => type === 'insert' || type === 'share'))
      .toEqual([
        { type: 'insert', text: 'You said: another one', close: false },
        { type: 'share', kind: 'message', text: 'You said: a secret thought' },
        { type: 'share', kind: 'conversation', text: expect.stringContaining('You said:\na secret thought') },
      ])
  })

  test('can be copied, as can its code blocks', async () => {
    const opened = await harness.open()
    await opened.page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await opened.say('look:\n\n```js\nconst a = 1\n```')
    await opened.settle()
    await opened.frame.getByRole('button', { name: 'Copy code' }).click()
    await opened.frame.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await opened.page.evaluate(() => navigator.clipboard.readText())).toBe('const a = 1\n')
    await opened.frame.getByRole('button', { name: 'Copy answer' }).click()
    await expect
      .poll(() => opened.page.evaluate(() => navigator.clipboard.readText()))
      .toContain('You said: look:\n\n```js')
  })

  test('is marked as unread if it completes while the window is closed', async () => {
    const opened = await harness.open()
    await opened.post({ type: 'visibility', isOpen: false })
    await opened.say('hello')
    await expect.poll(opened.said).toContainEqual({ type: 'unread', count: 1, label: '1 new message' })
    await opened.post({ type: 'visibility', isOpen: true })
    await expect.poll(opened.said).toContainEqual({ type: 'unread', count: 0, label: '' })
  })
})

describe('the message input', () => {
  test('sends on Enter, inserts a line break on Shift+Enter, and ignores Enter during IME composition', async () => {
    const opened = await harness.open()
    const input = opened.frame.locator('textarea')
    await opened.post({ type: 'focus' })
    await expect.poll(() => input.evaluate((area) => area === document.activeElement)).toBe(true)
    await input.pressSequentially('one')
    await input.press('Shift+Enter')
    await input.pressSequentially('two')
    const composing = { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }
    await input.evaluate((area, init) => area.dispatchEvent(new KeyboardEvent('keydown', init)), composing)
    expect(await input.inputValue()).toBe('one\ntwo')
    await input.press('Enter')
    expect(await input.inputValue()).toBe('')
    await opened.frame.locator('article.user', { hasText: 'one\ntwo' }).waitFor()
  })

  test('grows up to six lines and reports text that is too long', async () => {
    const opened = await harness.open()
    const input = opened.frame.locator('textarea')
    const heightOf = async () => (await input.boundingBox())?.height ?? 0
    const low = await heightOf()
    await input.fill('a\n'.repeat(40))
    expect(await heightOf()).toBeGreaterThan(low * 3)
    expect(await heightOf()).toBeLessThan(low * 6)
    await input.fill('x'.repeat(32_001))
    await visibleText(opened.frame, '32,001 characters (limit: 32,000)').waitFor()
    await input.press('Enter')
    expect(await opened.frame.locator('article.user').count()).toBe(0)
  })
})

test('a new conversation starts only after the visitor confirms it', async () => {
  const opened = await harness.open()
  await opened.say('to be lost')
  await opened.settle()
  const menu = opened.frame.getByRole('button', { name: 'More actions' })
  await menu.press('Enter')
  await opened.frame.locator('[role=menuitem]:focus').press('Enter')
  await opened.frame.getByRole('dialog').waitFor()
  await opened.page.keyboard.press('Escape')
  await opened.frame.locator('.menu button:focus').waitFor()
  expect(await opened.frame.locator('article.user').count()).toBe(1)
  await menu.press('Enter')
  await opened.frame.locator('[role=menuitem]:focus').press('Enter')
  await opened.frame.getByRole('button', { name: 'Start new' }).click()
  await opened.frame.getByRole('button', { name: 'What can you do?' }).waitFor()
  expect(await opened.frame.locator('article.user').count()).toBe(0)
  await opened.page.keyboard.press('Escape')
  await expect.poll(opened.said).toContainEqual({ type: 'close' })
})
