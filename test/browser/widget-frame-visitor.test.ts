/** Tests the list of stored conversations in the widget frame, the notice, and separate visitors. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  begins,
  choose,
  greeting,
  openVisible,
  reopen,
  type StoredOptions,
  slow,
  storedIn as stored,
  textsOf,
  whole,
} from '../support/stored-frames.ts'
import {
  type FrameHarness,
  keeper,
  type OpenFrame,
  openFrameHarness,
  plainOptions,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness({}, keeper)
})
afterAll(() => harness?.close())

const open = (options?: StoredOptions) => openVisible(harness, options)
const reload = (opened: OpenFrame, more?: StoredOptions) => reopen(harness, opened, more)

describe('the visitor', () => {
  test('starts a new conversation, and finds and deletes the earlier one', async () => {
    const opened = await open()
    await opened.say('the first topic')
    await opened.settle()
    await choose(opened, 'New conversation')
    await expect.poll(() => opened.frame.locator('article.user').count()).toBe(0)
    await opened.say('the second topic')
    await visibleText(opened.frame, 'You said: the second topic').waitFor()
    await opened.settle()

    await choose(opened, 'Earlier conversations')
    const list = opened.frame.getByRole('dialog', { name: 'Earlier conversations' })
    const rows = list.locator('.conversation-button')
    await expect
      .poll(() => rows.allInnerTexts())
      .toEqual([
        expect.stringMatching(/^the second topic\n(now|\d+ seconds? ago)$/),
        expect.stringMatching(/^the first topic\n(now|\d+ seconds? ago)$/),
      ])
    expect(await rows.first().getAttribute('aria-current')).toBe('true')
    await rows.nth(1).click()
    await visibleText(opened.frame, 'You said: the first topic').waitFor()
    expect(await textsOf(opened)).toEqual([greeting, 'the first topic', 'You said: the first topic'])
    expect(await opened.frame.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe(
      'More actions',
    )

    await choose(opened, 'Earlier conversations')
    await list.getByRole('button', { name: 'Delete “the second topic”' }).click()
    await opened.frame.getByRole('button', { name: 'Delete', exact: true }).click()
    await expect.poll(() => rows.count()).toBe(1)
    expect(await opened.frame.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe(
      'Back to chat',
    )
    await opened.page.keyboard.press('Escape')
    await choose(opened, 'Delete conversation')
    await opened.frame.getByRole('button', { name: 'Delete', exact: true }).click()
    await expect.poll(() => opened.frame.locator('article.user').count()).toBe(0)
    await choose(opened, 'Earlier conversations')
    await list.getByText('No earlier conversations').waitFor()
    expect(opened.complaints).toEqual([])
  })

  test('sees that a conversation is unread if it continued after the visitor left it', async () => {
    const opened = await open()
    await opened.say(slow)
    await begins(opened)
    await choose(opened, 'New conversation')
    await choose(opened, 'Earlier conversations')
    const row = opened.frame.locator('.conversation-button')
    await row.getByText('Unread').waitFor()
    await row.click()
    await visibleText(opened.frame, whole).waitFor()
    await choose(opened, 'Earlier conversations')
    await row.waitFor()
    expect(await row.getByText('Unread').count()).toBe(0)
  })

  test('sees after a reload that a conversation is unread', async () => {
    const opened = await open()
    await opened.say(slow)
    await begins(opened)
    await choose(opened, 'New conversation')
    await opened.say('another topic')
    await visibleText(opened.frame, 'You said: another topic').waitFor()
    await opened.settle()
    const reloaded = await reload(opened)
    await visibleText(reloaded.frame, 'You said: another topic').waitFor()
    await choose(reloaded, 'Earlier conversations')
    const rows = reloaded.frame.locator('.conversation-button')
    await rows.filter({ hasText: 'one two' }).getByText('Unread').waitFor()
    expect(await rows.getByText('Unread').count()).toBe(1)
    await rows.filter({ hasText: 'one two' }).click()
    await visibleText(reloaded.frame, whole).waitFor()
    await reloaded.settle()
    expect(Object.keys(JSON.parse(Object.values(await stored(reloaded))[0] ?? ''))).toEqual([
      'token',
      'conversation',
    ])
  })

  test('can load the list of conversations again after a failure', async () => {
    const opened = await open()
    await opened.say('hello')
    await opened.settle()
    await opened.page.route('**/trpc/visitor.conversations*', (route) => route.abort(), { times: 1 })
    await choose(opened, 'Earlier conversations')
    const list = opened.frame.getByRole('dialog')
    await list.getByText('cannot be reached').waitFor()
    await list.getByRole('button', { name: 'Try again' }).click()
    await list.locator('.conversation-button').waitFor()
  })

  test('sees a new conversation if the current one was deleted in another tab', async () => {
    const one = await open()
    await one.say('soon gone')
    await visibleText(one.frame, 'You said: soon gone').waitFor()
    const other = await open({ beside: one })
    await visibleText(other.frame, 'You said: soon gone').waitFor()
    await choose(other, 'Delete conversation')
    await other.frame.getByRole('button', { name: 'Delete', exact: true }).click()
    await expect.poll(() => one.frame.locator('article.user').count()).toBe(0)
    await one.say('again')
    await visibleText(one.frame, 'You said: again').waitFor()
  })

  test('is forgotten on logout, and each user is a different visitor', async () => {
    const opened = await open({ options: { user: 'ada' } })
    await opened.say('of ada')
    await opened.settle()
    const grace = await reload(opened, { options: { user: 'grace' } })
    await visibleText(grace.frame, 'Hello! I am').waitFor()
    expect(await grace.frame.locator('article.user').count()).toBe(0)
    const ada = await reload(grace, { options: { user: 'ada' } })
    await visibleText(ada.frame, 'You said: of ada').waitFor()
    await ada.post({ type: 'configure', options: { ...plainOptions, apiKey: harness.agent.agent_key } })
    await ada.post({ type: 'logout' })
    await expect.poll(() => ada.frame.locator('article.user').count()).toBe(0)
    await expect.poll(() => stored(ada)).toEqual({})
  })

  test('leaves no data in browser storage if the page disables history', async () => {
    const opened = await open({ options: { history: false } })
    await opened.say('in memory')
    await visibleText(opened.frame, 'You said: in memory').waitFor()
    await opened.settle()
    expect(await stored(opened)).toEqual({})
    await opened.say('still here')
    await visibleText(opened.frame, 'You said: still here').waitFor()
    const reloaded = await reload(opened, { options: { history: false } })
    await visibleText(reloaded.frame, 'Hello! I am').waitFor()
    expect(await reloaded.frame.locator('article.user').count()).toBe(0)
  })

  test('sees a new conversation when the page requests one', async () => {
    const opened = await open()
    await opened.say('before')
    await opened.settle()
    await opened.post({ type: 'newConversation' })
    await expect.poll(() => opened.frame.locator('article.user').count()).toBe(0)
    await visibleText(opened.frame, 'Hello! I am').waitFor()
  })

  test('sees the notice before the first message and can open it with a button later', async () => {
    const opened = await open()
    const notice = opened.frame.locator('.notice')
    await expect
      .poll(() => notice.innerText())
      .toBe('This conversation is stored for 30 days. The team behind this chat can read it.')
    await opened.say('hello')
    await opened.settle()
    expect(await notice.count()).toBe(0)
    await opened.frame.getByRole('button', { name: 'Privacy notice' }).click()
    await notice.waitFor()
    await opened.frame.getByRole('button', { name: 'Privacy notice' }).click()
    expect(await notice.count()).toBe(0)
  })

  test("sees the operator's notice with a link that opens in a new tab", async () => {
    const yaml = keeper.replace(
      '  keep: 30d\n',
      '  keep: 30d\n  notice: { text: We keep this chat., url: "https://example.org/privacy" }\n',
    )
    const agent = await harness.app.createAgent(yaml)
    const opened = await open({ key: agent.agent_key })
    await opened.frame.locator('.notice', { hasText: 'We keep this chat.' }).waitFor()
    const link = opened.frame.getByRole('link', { name: 'Privacy information' })
    expect(await link.getAttribute('href')).toBe('https://example.org/privacy')
    expect(await link.getAttribute('target')).toBe('_blank')
    expect(await link.getAttribute('rel')).toBe('noopener noreferrer')
  })
})
