/** Tests the console's webhook pages: the list, a webhook's settings, its secret and its deliveries. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openMenuPage, rowOf } from '../support/console-parts.ts'
import { openConsole, openWindow } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import { KEEPER, runTurn } from '../support/storing-chat.ts'
import {
  allowLoopback,
  createWebhook,
  deliverDue,
  startReceiver,
  verify,
  withStatus,
} from '../support/webhook-receiver.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const dialogOf = (page: Page) => page.getByRole('dialog')
const buttonOf = (page: Page, name: string) => dialogOf(page).getByRole('button', { name, exact: true })

/** Reads the secret that the dialog shows. */
async function readSecret(page: Page): Promise<string> {
  return (await dialogOf(page).getByRole('region', { name: 'Signing secret' }).innerText()).trim()
}

describe('the list of webhooks', () => {
  test('explains webhooks if the list is empty, with links to existing pages of the documentation', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/agents', { width: 1440 })
    await openMenuPage(page, 'Webhooks')
    await page.getByText('No webhooks yet').waitFor()
    await expectView(page, 'webhooks-empty')
    for (const name of ['how webhooks work', 'Slack', 'email']) {
      const path = (await page.getByRole('link', { name }).getAttribute('href')) as string
      expect([path, (await app.fetch(app.url + path)).status]).toEqual([path, 200])
    }
    expect(complaints).toEqual([])
  })

  test('explains that the operator forbids webhooks', async () => {
    const app = await startApp({ PARLEY_WEBHOOKS: 'forbidden' })
    const { page } = await openConsole(app, browser, '/webhooks?add=true')
    await page.getByText('This server does not allow webhooks').waitFor()
    expect(await page.getByRole('button', { name: 'Create webhook' }).count()).toBe(0)
    expect(await dialogOf(page).count()).toBe(0)
  })

  test('shows which webhooks are active, failing and disabled, and why', async () => {
    const app = await startApp(allowLoopback)
    const receiver = await startReceiver()
    const { agent_id: agentId, agent_key: key } = await app.createAgent(KEEPER)
    const create = async (path: string, more: object = {}) =>
      createWebhook(app, { url: receiver.url + path, events: ['conversation.created'], ...more })
    await create('/active', { agent_id: agentId, include_text: true })
    await create('/failing')
    await create('/gone')
    const owned = await create('/owned', { events: ['turn.failed', 'visitor.erased'] })
    const fields = { url: owned.url, events: owned.events, enabled: false }
    await app.call('PUT', `/v1/webhooks/${owned.id}`, { body: fields })
    receiver.answerByPath({ '/hook/failing': 500, '/hook/gone': 410 })
    await runTurn(app, key, 'Hello.')
    await deliverDue(app)
    const { page, complaints } = await openConsole(app, browser, '/webhooks', { width: 1440 })
    await rowOf(page, '/active').getByText('Active', { exact: true }).waitFor()
    await rowOf(page, '/active').getByText('Keeper').waitFor()
    await rowOf(page, '/failing').getByText('Failing', { exact: true }).waitFor()
    await rowOf(page, '/gone').getByText('The receiver responded with 410 (Gone)').waitFor()
    await rowOf(page, '/owned').getByText('Disabled by a user or with the API').waitFor()
    await rowOf(page, '/owned').getByText('Answer failed and 1 more').waitFor()
    await expectView(page, 'webhooks')
    await page.getByRole('button', { name: `Actions for ${owned.url}` }).click()
    await page.getByRole('menuitem', { name: 'Enable' }).click()
    await page.getByText('Webhook enabled').waitFor()
    await rowOf(page, '/owned').getByText('Active', { exact: true }).waitFor()
    expect(complaints).toEqual([])
  })
})

describe('a webhook', () => {
  test('can be created, shows its secret once, and delivers signed events', async () => {
    const app = await startApp(allowLoopback)
    const receiver = await startReceiver()
    const { agent_key: key } = await app.createAgent(KEEPER)
    const { page, complaints } = await openConsole(app, browser, '/webhooks', { width: 1440 })
    await page.getByRole('button', { name: 'Create webhook' }).click()
    const url = dialogOf(page).getByRole('textbox', { name: 'URL' })
    expect(await buttonOf(page, 'Create webhook').isDisabled()).toBe(true)
    await dialogOf(page).getByRole('checkbox', { name: 'Conversation started' }).check()
    await dialogOf(page).getByRole('checkbox', { name: 'Include the text of messages' }).check()
    await dialogOf(page)
      .getByText(/which can be personal data/)
      .waitFor()
    await url.fill('http://example.org/hook')
    await buttonOf(page, 'Create webhook').click()
    await dialogOf(page).getByText('URL must start with https://').waitFor()
    expect(await url.getAttribute('aria-invalid')).toBe('true')
    await expect.poll(() => url.evaluate((input) => input === document.activeElement)).toBe(true)
    await expectView(page, 'webhook-create')
    await url.fill(receiver.url)
    await buttonOf(page, 'Create webhook').click()
    await dialogOf(page).getByText('Copy the secret now').waitFor()
    const secret = await readSecret(page)
    await expectView(page, 'webhook-secret')
    await buttonOf(page, 'I have copied it').click()
    await runTurn(app, key, 'Where is my order?')
    await deliverDue(app)
    const [event] = receiver.received
    expect(verify(secret, event as never)).toMatchObject({
      type: 'conversation.created',
      data: { text: 'Where is my order?' },
    })
    expect(await page.content()).not.toContain(secret)
    await page.reload()
    await page.getByRole('link', { name: receiver.url }).click()
    await page.getByRole('region', { name: 'Details' }).waitFor()
    expect(await page.content()).not.toContain(secret)
    expect(complaints.filter((text) => !text.includes('400'))).toEqual([])
  })

  test('can be created and tested with only the keyboard', async () => {
    const app = await startApp(allowLoopback)
    const receiver = await startReceiver()
    const { page } = await openConsole(app, browser, '/webhooks')
    await page.getByRole('button', { name: 'Create webhook' }).focus()
    await page.keyboard.press('Enter')
    await dialogOf(page).waitFor()
    const url = dialogOf(page).getByRole('textbox', { name: 'URL' })
    await expect.poll(() => url.evaluate((input) => input === document.activeElement)).toBe(true)
    await page.keyboard.type(receiver.url)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await dialogOf(page).getByText('Copy the secret now').waitFor()
    await page.keyboard.press('Escape')
    await dialogOf(page).waitFor({ state: 'hidden' })
    await rowOf(page, receiver.url).getByText('All events').waitFor()
    await page.getByRole('link', { name: receiver.url }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Send test event' }).focus()
    await page.keyboard.press('Enter')
    await dialogOf(page)
      .getByText(/^Delivered in \d+ ms$/)
      .waitFor()
    expect(receiver.received.map(({ body }) => body.type)).toEqual(['webhook.test'])
  })

  test('can be tested, edited and deleted, and its secret can be rotated', async () => {
    const app = await startApp(allowLoopback)
    const receiver = await startReceiver()
    const webhook = await createWebhook(app, { url: receiver.url, events: ['conversation.created'] })
    const { page, complaints } = await openConsole(app, browser, `/webhooks/${webhook.id}`, { width: 1440 })
    await page.getByText('No deliveries yet').waitFor()
    await page.getByRole('button', { name: 'Send test event' }).click()
    await dialogOf(page).getByText('The receiver responded with status 204.').waitFor()
    await saveScreenshot(page, 'webhook-test-succeeded')
    receiver.answerNext(withStatus(503))
    await buttonOf(page, 'Send another').click()
    await dialogOf(page)
      .getByText(/^Failed after \d+ ms$/)
      .waitFor()
    await dialogOf(page).getByText('The receiver responded with 503.').waitFor()
    await expectView(page, 'webhook-test-failed')
    await buttonOf(page, 'Done').click()
    await rowOf(page, 'Test event.*Failed.*503').waitFor()

    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Edit…' }).click()
    await dialogOf(page).getByRole('checkbox', { name: 'Answer failed' }).check()
    await dialogOf(page).getByRole('switch', { name: 'Deliver events' }).uncheck({ force: true })
    await buttonOf(page, 'Save').click()
    await page.getByText('Webhook saved').waitFor()
    const { body } = await app.call('GET', `/v1/webhooks/${webhook.id}`)
    expect(body).toMatchObject({ events: ['conversation.created', 'turn.failed'], state: 'disabled' })

    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Rotate secret…' }).click()
    await dialogOf(page)
      .getByText(/For 24 hours, both secrets sign/)
      .waitFor()
    await buttonOf(page, 'Rotate secret').click()
    const rotated = await readSecret(page)
    expect(rotated).toMatch(/^whsec_/)
    expect(rotated).not.toBe(webhook.secret)
    await dialogOf(page)
      .getByText(/The previous secret also signs deliveries until/)
      .waitFor()
    await buttonOf(page, 'I have copied it').click()
    await page
      .getByRole('region', { name: 'Details' })
      .getByText(/also signs deliveries until/)
      .waitFor()

    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Delete…' }).click()
    await buttonOf(page, 'Delete webhook').click()
    await page.getByText('No webhooks yet').waitFor()
    expect((await app.call('GET', `/v1/webhooks/${webhook.id}`)).status).toBe(404)
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
  })

  test('lists its deliveries with attempts and responses, and sends one again', async () => {
    const app = await startApp(allowLoopback)
    const receiver = await startReceiver()
    const { agent_key: key } = await app.createAgent(KEEPER)
    const webhook = await createWebhook(app, { url: receiver.url, events: ['conversation.created'] })
    receiver.answerNext(withStatus(204), withStatus(500, { 'Retry-After': '7200' }))
    const { conversation } = await runTurn(app, key, 'The first question.')
    await deliverDue(app)
    await runTurn(app, key, 'The second question.')
    await deliverDue(app)
    const { page, complaints } = await openConsole(app, browser, `/webhooks/${webhook.id}`, { width: 1440 })
    const waiting = rowOf(page, 'Waiting')
    await expect.poll(() => waiting.innerText()).toMatch(/1 of 10\s+500\s+in 2 hours/)
    await rowOf(page, 'Delivered').getByText('204').waitFor()
    await expectView(page, 'webhook-deliveries')
    await rowOf(page, 'Delivered')
      .getByRole('button', { name: /^Actions for/ })
      .click()
    await page.getByRole('menuitem', { name: 'Show request' }).click()
    await dialogOf(page).getByRole('region', { name: 'Body' }).getByText(conversation).waitFor()
    await expectView(page, 'webhook-request')
    await page.keyboard.press('Escape')
    await waiting.getByRole('button', { name: 'Send again' }).click()
    await page.getByText('The delivery will be sent again').waitFor()
    await deliverDue(app)
    await page.reload()
    await expect.poll(() => rowOf(page, 'Delivered').count()).toBe(2)
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(2)
    await rowOf(page, 'Delivered').first().getByRole('link').click()
    await page.waitForURL('**/console/conversations/conv_*')
    expect(complaints).toEqual([])
  })

  test('that does not exist is reported as a missing page, but only to a signed-in user', async () => {
    const app = await startApp()
    const { page } = await openWindow(app, browser)
    await page.goto(`${app.url}/console/webhooks/wh_unknown`)
    await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
    const signedIn = await openConsole(app, browser, '/webhooks/wh_unknown')
    await signedIn.page.getByText('This page does not exist').waitFor()
    expect(await listAxeFaults(signedIn.page)).toEqual([])
  })
})
