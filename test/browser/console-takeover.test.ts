/** Tests that console users can answer visitors instead of the model, and see which visitors are waiting. */
import { randomUUID } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { change, isMode, textsOf } from '../support/handover.ts'
import { storingAgent } from '../support/stored-chats.ts'
import { beginSession, followUntil, say, sayAndWait } from '../support/visitors.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

/** Starts a service with a visitor who has received an answer. */
async function startVisit() {
  const app = await startApp()
  const { agent_key: key } = await app.createAgent(storingAgent({ handover: {} }))
  const one = await beginSession(app, key)
  const { sent } = await sayAndWait(one, 'Hello.')
  const id = sent.conversation.id
  const write = (text: string) => one.visitor.send.mutate({ conversation: id, client_id: randomUUID(), text })
  return { app, key, one, id, write }
}

/** Lists the model's texts, oldest first. */
async function listModelTexts(app: TestApp, id: string): Promise<string[]> {
  const { body } = await app.call('GET', `/v1/conversations/${id}/items?order=asc`)
  const items: { type: string; parley: { author: string }; content: { text: string }[] }[] = body.data
  return items
    .filter(({ type, parley }) => type === 'message' && parley.author === 'model')
    .map(({ content }) => content[0]?.text.replaceAll(/\s+/g, ' ') ?? '')
}

/** Replaces the browser's notifications, which tests cannot read. */
async function recordNotifications(page: Page): Promise<void> {
  await page.evaluate(() => {
    const shown: string[] = []
    class Recorded extends EventTarget {
      static permission = 'granted'
      onclick: unknown = null
      constructor(title: string, { body }: { body: string }) {
        super()
        shown.push(`${title}: ${body}`)
      }
    }
    Object.assign(window, { Notification: Recorded, shown })
  })
}

function readNotifications(page: Page): Promise<string[]> {
  return page.evaluate(() => (window as unknown as { shown: string[] }).shown)
}

test('a user takes a conversation over, answers its visitor and hands it back', async () => {
  const { app, one, id, write } = await startVisit()
  const { page, complaints } = await openConsole(app, browser, `/conversations/${id}`, { width: 1440 })
  const transcript = page.getByRole('list', { name: 'Transcript' })
  await page.getByText('The model answers').first().waitFor()
  await one.visitor.requestPerson.mutate({ conversation: id, reason: 'A refund' })
  await page.getByText('Waiting for a person since').waitFor()
  await page.getByText(/If no person answers by .+, the model continues/).waitFor()
  await transcript.getByText('A refund').waitFor()
  await expectView(page, 'takeover-waiting')
  await write('Is a person there?')
  await transcript.getByText('Is a person there?').waitFor()
  await page.getByRole('button', { name: 'Take over', exact: true }).click()
  await page.getByText('You have been answering since').waitFor()
  await page.keyboard.press('r')
  await page.keyboard.type('Yes, I am here.')
  await page.keyboard.press('Enter')
  await transcript.getByText('Yes, I am here.').waitFor()
  const seen = await followUntil(one, { conversation: id, cursor: '0.0.e' }, (event) =>
    textsOf([event]).includes('Yes, I am here.'),
  )
  expect(textsOf(seen).filter((text) => text === 'Yes, I am here.')).toHaveLength(1)
  await expectView(page, 'takeover')
  await page.locator('h1').click()
  await page.keyboard.press('e')
  await page.getByText('The model answers', { exact: true }).waitFor()
  await followUntil(one, { conversation: id, cursor: seen.at(-1)?.id ?? '' }, isMode('model'))
  await say(one, '[[delay:100]] One two three four.', { conversation: id })
  await transcript.getByText('You said: One two three four.').waitFor()
  // The model has answered only before and after the person.
  await expect
    .poll(() => listModelTexts(app, id))
    .toEqual(['You said: Hello.', 'You said: One two three four.'])
  expect(complaints).toEqual([])
})

test('a message is stored and shown once when the connection is lost while it is sent', async () => {
  const { app, id } = await startVisit()
  const { page, context } = await openConsole(app, browser)
  // Without the stream of events, only the response to the request can report that the message is stored.
  await page.route('**/trpc/conversations.follow*', (route) => route.abort())
  await page.goto(`${app.url}/console/conversations/${id}`)
  await page.getByRole('button', { name: 'Take over', exact: true }).click()
  await page.getByText('You have been answering since').waitFor()
  // The server receives the message, but its response is lost.
  await page.route('**/trpc/conversations.sendMessage*', async (route) => {
    await context.setOffline(true)
    await route.fetch()
    await route.abort()
  })
  const reply = page.getByRole('textbox', { name: 'Reply' })
  await reply.fill('Your refund is on its way.')
  await reply.press('Enter')
  await page.getByText('Not sent yet.').waitFor()
  // The notice at the bottom of the window covers neither the reply nor the navigation.
  const notice = await page.locator('.offline-notice').boundingBox()
  const reference = page.getByRole('link', { name: 'API reference' })
  for (const control of [page.getByRole('button', { name: 'Send', exact: true }), reference])
    await expect
      .poll(async () => {
        const box = await control.boundingBox()
        return box === null ? Number.NaN : box.y + box.height
      })
      .toBeLessThanOrEqual(notice?.y ?? 0)
  await expectView(page, 'takeover-offline')
  await page.unroute('**/trpc/conversations.sendMessage*')
  await context.setOffline(false)
  await page.getByText('Not sent yet.').waitFor({ state: 'detached' })
  const { body } = await app.call('GET', `/v1/conversations/${id}/items`)
  const texts = body.data.map((item: { content: { text: string }[] }) => item.content[0]?.text)
  expect(texts.filter((text: string) => text === 'Your refund is on its way.')).toHaveLength(1)
  await expect.poll(() => page.getByText('Your refund is on its way.', { exact: true }).count()).toBe(1)
})

test('a message that the server rejects stays on the page and can be discarded', async () => {
  const { app, id } = await startVisit()
  const { page } = await openConsole(app, browser, `/conversations/${id}`)
  await page.getByText('The model answers').first().waitFor()
  const reply = page.getByRole('textbox', { name: 'Reply' })
  await reply.fill('Hello from the console.')
  // Another person takes the conversation over before the message arrives.
  await page.route('**/trpc/conversations.sendMessage*', async (route) => {
    await change(app, id, 'takeover', { name: 'Ana' })
    await route.continue()
  })
  await reply.press('Enter')
  await page.getByText(/^Not sent: /).waitFor()
  await page.getByText('Only Ana can write').waitFor()
  expect(await page.getByText('Hello from the console.').count()).toBe(1)
  await page.getByRole('button', { name: 'Discard' }).click()
  await page.getByText('Hello from the console.').waitFor({ state: 'detached' })
  const { text } = await app.call('GET', `/v1/conversations/${id}/items`)
  expect(text).not.toContain('Hello from the console.')
})

test('waiting conversations are counted in the navigation and the title, and cause desktop notifications', async () => {
  const { app, key, one, id } = await startVisit()
  const { page, context, complaints } = await openConsole(app, browser, '/conversations?mode=waiting')
  await context.grantPermissions(['notifications'], { origin: app.url })
  await page.getByText('No visitor is waiting').waitFor()
  await recordNotifications(page)
  await page.getByRole('button', { name: 'Notify me of waiting visitors' }).click()
  await page.getByText('Notifications are on in this browser').waitFor()
  await one.visitor.requestPerson.mutate({ conversation: id })
  const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: /Conversations/ })
  await expect.poll(() => link.innerText()).toMatch(/Conversations\s*1/)
  await expect.poll(() => page.title()).toBe('(1) Conversations · Parley')
  await page.getByRole('list', { name: 'Conversations' }).getByText('Hello.').waitFor()
  expect(await readNotifications(page)).toEqual(['A visitor is waiting: Hello.'])
  // A second tab shows the count, but does not notify again.
  const second = await context.newPage()
  await second.goto(`${app.url}/console/usage`)
  await expect.poll(() => second.title()).toBe('(1) Usage · Parley')
  const two = await beginSession(app, key)
  const { sent } = await sayAndWait(two, 'Me too.')
  await two.visitor.requestPerson.mutate({ conversation: sent.conversation.id })
  await expect.poll(() => second.title()).toBe('(2) Usage · Parley')
  expect(await readNotifications(page)).toHaveLength(2)
  await page.getByRole('button', { name: 'All', exact: true }).click()
  for (const conversation of [id, sent.conversation.id]) await change(app, conversation, 'takeover')
  await expect.poll(() => page.title()).toBe('Conversations · Parley')
  expect(complaints).toEqual([])
})

test('messages and waiting visitors appear again after the connections have become silent', async () => {
  const { app, one, id } = await startVisit()
  const proxy = await CuttingProxy.open(app.url)
  onTestFinished(() => proxy.close())
  const { page } = await openConsole({ ...app, url: proxy.url }, browser)
  await page.clock.install()
  await page.goto(`${proxy.url}/console/conversations/${id}`)
  await page.getByText('The model answers').first().waitFor()
  await page.getByRole('list', { name: 'Transcript' }).getByText('You said: Hello.').waitFor()
  proxy.stall()
  await one.visitor.requestPerson.mutate({ conversation: id })
  const show = async () => {
    // A new attempt may first use another connection of the browser that is silent.
    await page.clock.fastForward(41_000)
    return [await page.title(), await page.getByText('Waiting for a person since').count()]
  }
  await expect.poll(show, { timeout: 120_000, interval: 4_000 }).toEqual(['(1) Hello. · Parley', 1])
})

test('an open conversation that is deleted shows that it was deleted, and accepts no reply', async () => {
  const { app, id } = await startVisit()
  const { page } = await openConsole(app, browser, `/conversations/${id}`, { width: 1440 })
  const list = page.getByRole('list', { name: 'Conversations' })
  await list.getByText('Hello.').waitFor()
  await page.getByText('The model answers').first().waitFor()
  expect((await app.call('DELETE', `/v1/conversations/${id}`)).status).toBe(200)
  await page.getByRole('heading', { name: 'This conversation was deleted' }).waitFor()
  expect(await page.getByRole('textbox', { name: 'Reply' }).count()).toBe(0)
  await list.waitFor({ state: 'detached' })
  await expectView(page, 'takeover-deleted')
  await page.getByRole('link', { name: 'Back to the list' }).click()
  await page.getByText('No conversations yet').waitFor()
})

test("a visitor's reply to the user is announced while another conversation is open", async () => {
  const { app, key, id, write } = await startVisit()
  const two = await beginSession(app, key)
  const { sent } = await sayAndWait(two, 'Another question.')
  const other = sent.conversation.id
  const { page, context, complaints } = await openConsole(app, browser, `/conversations/${id}`, {
    width: 1440,
  })
  await context.grantPermissions(['notifications'], { origin: app.url })
  await recordNotifications(page)
  await page.getByRole('button', { name: 'Notify me of waiting visitors' }).click()
  const reply = page.getByRole('textbox', { name: 'Reply' })
  await reply.fill('How can I help?')
  await reply.press('Enter')
  await page.getByText('You have been answering since').waitFor()
  const list = page.getByRole('list', { name: 'Conversations' })
  await list.getByText('Another question.').click()
  await page.getByRole('heading', { name: 'Another question.' }).waitFor()
  expect(await page.title()).toBe('Another question. · Parley')
  await write('I want a refund.')
  await expect.poll(() => page.title()).toBe('(1) Another question. · Parley')
  await list.getByText(/Answer due by /).waitFor()
  expect(await readNotifications(page)).toEqual(['A visitor has replied to you: Hello.'])
  await expectView(page, 'takeover-reply')
  await list.getByText('Hello.').click()
  await page.getByText(/If you do not answer by .+, the visitor waits for a person again/).waitFor()
  await expectView(page, 'takeover-due')
  await reply.fill('Of course.')
  await reply.press('Enter')
  await expect.poll(() => page.title()).toBe('Hello. · Parley')
  await list.getByText(/Answer due by /).waitFor({ state: 'detached' })
  // A reply to another person is marked, but not announced.
  await change(app, other, 'takeover', { name: 'Ana' })
  await two.visitor.send.mutate({ conversation: other, client_id: randomUUID(), text: 'Hello Ana.' })
  await write('Thank you.')
  await expect.poll(() => page.title()).toBe('(1) Hello. · Parley')
  await expect.poll(() => list.getByText(/Answer due by /).count()).toBe(2)
  expect(await readNotifications(page)).toEqual(Array(2).fill('A visitor has replied to you: Hello.'))
  expect(complaints).toEqual([])
})

test('waiting conversations are counted in a browser that cannot show notifications from web pages', async () => {
  const { app, key, one, id } = await startVisit()
  const { page, context } = await openConsole(app, browser, '/conversations')
  let streams = 0
  page.on('request', (request) => {
    if (request.url().includes('/trpc/conversations.waiting')) streams++
  })
  await context.grantPermissions(['notifications'], { origin: app.url })
  // Behaves like Chrome on Android.
  await page.addInitScript(() => {
    class Refused {
      static permission = 'granted'
      constructor() {
        throw new TypeError('Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.')
      }
    }
    Object.assign(window, { Notification: Refused })
  })
  await page.goto(`${app.url}/console/conversations`)
  const bell = page.getByRole('button', { name: 'Notify me of waiting visitors' })
  await bell.click()
  await page.getByText('Notifications are on in this browser').waitFor()
  await one.visitor.requestPerson.mutate({ conversation: id })
  await expect.poll(() => page.title()).toBe('(1) Conversations · Parley')
  const opened = streams
  await bell.waitFor({ state: 'detached' })
  const two = await beginSession(app, key)
  const { sent } = await sayAndWait(two, 'Me too.')
  await two.visitor.requestPerson.mutate({ conversation: sent.conversation.id })
  await expect.poll(() => page.title()).toBe('(2) Conversations · Parley')
  expect(streams).toBe(opened)
})

test('a browser that cannot show notifications from web pages is not asked for permission', async () => {
  const { app } = await startVisit()
  const { page } = await openConsole(app, browser)
  await page.addInitScript(() => {
    class Refused {
      static permission = 'default'
      static requestPermission() {
        throw new Error('The page must not ask.')
      }
      constructor() {
        throw new TypeError('Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.')
      }
    }
    Object.assign(window, { Notification: Refused })
  })
  await page.goto(`${app.url}/console/conversations`)
  await page.getByRole('button', { name: 'Notify me of waiting visitors' }).click()
  await page.getByText('This browser cannot show notifications from web pages.').waitFor()
})

test('the list shows new conversations and sorts them by activity without a reload', async () => {
  const { app, key, id, write } = await startVisit()
  const { page, complaints } = await openConsole(app, browser, '/conversations', { width: 1440 })
  const rows = page.getByRole('list', { name: 'Conversations' }).getByRole('link')
  const listTitles = async () =>
    (await rows.locator('.desk-row-title').allTextContents()).map((text) => text.trim())
  await expect.poll(listTitles).toEqual(['Hello.'])
  const two = await beginSession(app, key)
  await sayAndWait(two, 'A second visitor.')
  await expect.poll(listTitles).toEqual(['A second visitor.', 'Hello.'])
  await rows.filter({ hasText: 'A second visitor.' }).focus()
  await write('I am back.')
  await expect.poll(listTitles).toEqual(['Hello.', 'A second visitor.'])
  expect(await page.evaluate(() => document.activeElement?.textContent)).toContain('A second visitor.')
  await app.call('PUT', `/v1/conversations/${id}/tags`, { body: { tags: ['guest'] } })
  await rows.filter({ hasText: 'guest' }).waitFor()
  await app.call('DELETE', `/v1/conversations/${id}`)
  await expect.poll(listTitles).toEqual(['A second visitor.'])
  expect(complaints).toEqual([])
})

test('the view Mine lists the conversations that the user answers, and a tag leads to its conversations', async () => {
  const { app, key, id } = await startVisit()
  const two = await beginSession(app, key)
  await sayAndWait(two, 'A second visitor.')
  await app.call('PUT', `/v1/conversations/${id}/tags`, { body: { tags: ['guest'] } })
  const { page, complaints } = await openConsole(app, browser, `/conversations/${id}`, { width: 1440 })
  const titles = page.getByRole('list', { name: 'Conversations' }).locator('.desk-row-title')
  await page.getByRole('button', { name: 'Take over', exact: true }).click()
  await page.getByText('You have been answering since').waitFor()
  await page.getByRole('button', { name: 'Mine' }).click()
  await expect.poll(() => titles.allTextContents()).toEqual(['Hello.'])
  await expectView(page, 'conversations-mine')
  await page.getByRole('button', { name: 'All', exact: true }).click()
  await expect.poll(() => titles.count()).toBe(2)
  await page.getByRole('tab', { name: 'Conversation' }).click()
  await page.getByRole('link', { name: 'guest', exact: true }).click()
  await expect.poll(() => titles.allTextContents()).toEqual(['Hello.'])
  expect(new URL(page.url()).searchParams.get('tag')).toBe('guest')
  await page.locator('.desk-filters button[aria-haspopup="dialog"]').click()
  await page.getByLabel('Reason').selectOption('taken_over')
  await page.getByLabel('Tokens at least').fill('1')
  await page.keyboard.press('Enter')
  await page.getByText('Taken over by a person').first().waitFor()
  await expectView(page, 'conversations-filters')
  expect(complaints).toEqual([])
})

test('a reply that was written offline does not take over a conversation that was handed back', async () => {
  const { app, id } = await startVisit()
  const { page, context } = await openConsole(app, browser, `/conversations/${id}`, { width: 1440 })
  await page.getByRole('button', { name: 'Take over', exact: true }).click()
  await page.getByText('You have been answering since').waitFor()
  await context.setOffline(true)
  const reply = page.getByRole('textbox', { name: 'Reply' })
  await reply.fill('Are you still there?')
  await reply.press('Enter')
  await page.getByText('Not sent yet.').waitFor()
  expect((await change(app, id, 'handback')).status).toBe(200)
  await context.setOffline(false)
  await page.getByText('Not sent, because you no longer answer this conversation.').waitFor()
  await page.getByText('The model answers').first().waitFor()
  const readMode = async () => (await app.call('GET', `/v1/conversations/${id}`)).body.parley.mode
  expect(await readMode()).toBe('model')
  await expectView(page, 'takeover-handed-back')
  const unsent = page.getByRole('list', { name: 'Unsent messages' })
  await unsent.getByRole('button', { name: 'Take over and send' }).click()
  await page.getByText('You have been answering since').waitFor()
  await page.getByRole('list', { name: 'Transcript' }).getByText('Are you still there?').waitFor()
  expect(await readMode()).toBe('person')
})
