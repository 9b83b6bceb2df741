/** Tests the console's visitor pages: the list, a visitor's data, the export and the erasure. */
import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openMenuPage, rowOf } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import { openConversations } from '../support/stored-chats.ts'
import { KEEPER } from '../support/storing-chat.ts'
import { beginSession, sayAndWait } from '../support/visitors.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const dialogOf = (page: Page) => page.getByRole('dialog')

/** Sends messages as new visitors; returns the ids of the visitors. */
async function visit(app: TestApp, key: string, ...messages: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const message of messages) {
    const visitor = await beginSession(app, key)
    await sayAndWait(visitor, message)
    ids.push(visitor.id)
  }
  return ids
}

/** Marks a visitor as verified, with an identity and claims. */
async function makeVerified(app: TestApp, id: string, more: object = {}): Promise<void> {
  const db = await openConversations(app)
  const verified = {
    kind: 'verified',
    issuer: 'https://shop.example.org',
    subject: 'customer-4711',
    name: 'Ada Lovelace',
    email: 'ada@example.org',
    claims: JSON.stringify({ plan: 'business', seats: 12 }),
  } as const
  await db
    .updateTable('visitors')
    .set({ ...verified, ...more })
    .where('id', '=', id)
    .execute()
}

/** Starts a service with two agents, an anonymous visitor of each, and a verified visitor of the first. */
async function startShop() {
  const app = await startApp()
  const first = await app.createAgent(KEEPER)
  const second = await app.createAgent(KEEPER.replace('Keeper', 'Second keeper'))
  const [ada = '', anonymous = ''] = await visit(app, first.agent_key, 'Where is my order?', 'Hello.')
  const [other = ''] = await visit(app, second.agent_key, 'Hi.')
  await makeVerified(app, ada)
  return { app, ada, anonymous, other, first, second }
}

describe('the list of visitors', () => {
  test('explains when visitors appear', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/agents', { width: 1440 })
    await openMenuPage(page, 'Visitors')
    await page.getByText('No visitors yet').waitFor()
    await page.getByText('Store conversations').waitFor()
    await expectView(page, 'visitors-empty')
    expect(complaints).toEqual([])
  })

  test('explains that the operator forbids storage', async () => {
    const app = await startApp({ PARLEY_CONVERSATIONS: 'forbidden' })
    const { page } = await openConsole(app, browser, '/visitors')
    await page.getByText('This server does not store conversations').waitFor()
  })

  test('can be searched and filtered by agent, and keeps the agent in the URL', async () => {
    const { app, anonymous, other, second } = await startShop()
    const { page, complaints } = await openConsole(app, browser, '/visitors', { width: 1440 })
    const rows = page.getByRole('table', { name: 'Visitors' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(3)
    expect(await rowOf(page, 'Ada Lovelace').innerText()).toMatch(/customer-4711\s+Verified\s+1\s/)
    await expectView(page, 'visitors')
    await page.getByRole('textbox', { name: 'Search visitors' }).fill('ada@example')
    await expect.poll(() => rows.count()).toBe(1)
    expect(await rows.first().innerText()).toContain('Ada Lovelace')
    await page.getByRole('textbox', { name: 'Search visitors' }).fill(anonymous)
    await rowOf(page, 'Anonymous visitor')
      .getByText(`…${anonymous.slice(-6)}`)
      .waitFor()
    await expect.poll(() => rows.count()).toBe(1)
    await page.getByRole('textbox', { name: 'Search visitors' }).fill('nobody')
    await page.getByText('No matching visitors').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expect.poll(() => rows.count()).toBe(3)
    await page.getByRole('combobox', { name: 'Agent' }).fill('second')
    await page.getByRole('option', { name: 'Second keeper' }).click()
    await expect.poll(() => rows.count()).toBe(1)
    expect(page.url()).toContain(`agent=${second.agent_id}`)
    await page.reload()
    await expect.poll(() => rows.count()).toBe(1)
    expect(await rows.first().innerText()).toContain(other.slice(-6))
    expect(complaints).toEqual([])
  })

  test('is sorted by the last message, and has several pages', async () => {
    const app = await startApp({ PARLEY_RATE_LIMIT_AGENT: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0' })
    const { agent_key: key } = await app.createAgent(KEEPER)
    const ids = await visit(app, key, ...Array.from({ length: 26 }, (_, index) => `Message ${index}.`))
    const db = await openConversations(app)
    for (const [index, id] of ids.entries())
      await db
        .updateTable('visitors')
        .set({ seen_at: 1_700_000_000 + index })
        .where('id', '=', id)
        .execute()
    const { page } = await openConsole(app, browser, '/visitors')
    const rows = page.getByRole('table', { name: 'Visitors' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(25)
    await expect.poll(() => rows.first().innerText()).toContain((ids.at(-1) as string).slice(-6))
    const newest = ids.slice(1).toReversed()
    const expected = newest.map((id) => expect.stringContaining(id.slice(-6)))
    expect(await rows.allInnerTexts()).toEqual(expected)
    await page.getByRole('button', { name: 'Next' }).click()
    await expect.poll(() => rows.count()).toBe(1)
    expect(await rows.first().innerText()).toContain((ids[0] as string).slice(-6))
  })

  test('shows an error if the request fails, and loads after “Try again”', async () => {
    const app = await startApp()
    const { page } = await openConsole(app, browser, '/agents')
    let fails = true
    await page.route('**/trpc/**visitors.list**', (route) =>
      fails ? route.fulfill({ status: 503, body: '' }) : route.continue(),
    )
    await page.goto(`${app.url}/console/visitors`)
    await page.getByText('The visitors could not be loaded').waitFor()
    expect(await listAxeFaults(page)).toEqual([])
    await saveScreenshot(page, 'visitors-failed')
    fails = false
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('No visitors yet').waitFor()
  })
})

describe('a visitor', () => {
  test('is shown with identity, claims and conversations, and can be exported', async () => {
    const { app, ada, anonymous } = await startShop()
    const { page, complaints } = await openConsole(app, browser, `/visitors/${ada}`, { width: 1440 })
    await page.getByRole('heading', { name: 'Ada Lovelace', level: 1 }).waitFor()
    const details = page.getByRole('region', { name: 'Details' })
    await expect
      .poll(() => details.innerText())
      .toMatch(
        /Verified[\s\S]*ada@example\.org[\s\S]*customer-4711[\s\S]*shop\.example\.org[\s\S]*business[\s\S]*12/,
      )
    await page.getByRole('link', { name: 'Where is my order?' }).waitFor()
    await expectView(page, 'visitor')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export' }).click(),
    ])
    expect(download.suggestedFilename()).toBe(`${ada}.jsonl`)
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n')
    const objects = lines.map((line) => JSON.parse(line).object)
    expect(objects).toEqual(['visitor', 'turn', 'export.end'])
    await page.getByRole('link', { name: 'View all conversations' }).click()
    await page.waitForURL(`**/console/conversations?visitor=${ada}`)
    await page.getByRole('link', { name: /Where is my order/ }).waitFor()
    expect(await page.getByText('Hello.').count()).toBe(0)
    await page.goto(`${app.url}/console/visitors/${anonymous}`)
    await page.getByRole('heading', { name: 'Anonymous visitor', level: 1 }).waitFor()
    await details.getByText('Keeper').waitFor()
    expect(complaints).toEqual([])
  })

  test('is erased after a confirmation, and the receipt can be downloaded', async () => {
    const { app, ada } = await startShop()
    const { page, complaints } = await openConsole(app, browser, `/visitors/${ada}`, { width: 1440 })
    await page.getByRole('button', { name: 'Erase…' }).click()
    await dialogOf(page).getByText('This cannot be undone.').waitFor()
    await dialogOf(page)
      .getByText(/^1 conversation with its messages/)
      .waitFor()
    await expectView(page, 'visitor-erase')
    await dialogOf(page).getByRole('button', { name: 'Cancel' }).click()
    expect((await app.call('GET', `/v1/visitors/${ada}`)).status).toBe(200)
    await page.getByRole('button', { name: 'Erase…' }).click()
    await dialogOf(page).getByRole('button', { name: 'Erase visitor' }).click()
    await page.getByRole('heading', { name: 'Erasing the visitor', level: 1 }).waitFor()
    await saveScreenshot(page, 'visitor-erasing')
    await page.getByRole('heading', { name: 'Visitor erased', level: 1 }).waitFor()
    expect((await app.call('GET', `/v1/visitors/${ada}`)).status).toBe(404)
    const id = new URL(page.url()).searchParams.get('erasure')
    const receipt = (await app.call('GET', `/v1/erasures/${id}`)).body
    const counts = page.getByRole('region', { name: 'Deleted', exact: true })
    expect(await counts.innerText()).toMatch(
      new RegExp(`Conversations\\s+1\\s+Turns\\s+1\\s+Messages and tool calls\\s+${receipt.counts.items}\\s`),
    )
    await page.getByRole('region', { name: 'Not deleted' }).getByText(receipt.remains[1]).waitFor()
    await page.getByRole('region', { name: 'Digest' }).getByText(receipt.digest).waitFor()
    await expectView(page, 'visitor-erased')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download receipt' }).click(),
    ])
    expect(download.suggestedFilename()).toBe(`${id}.json`)
    expect(JSON.parse(await readFile(await download.path(), 'utf8'))).toEqual(receipt)
    await page.reload()
    await page.getByRole('heading', { name: 'Visitor erased', level: 1 }).waitFor()
    await page.getByRole('link', { name: 'Back to visitors' }).click()
    const rows = page.getByRole('table', { name: 'Visitors' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(2)
    expect(complaints).toEqual([])
  })

  test('with a long name and many claims fits on a phone', async () => {
    const { app, ada } = await startShop()
    const claims = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`claim_${index}`, 'value'.repeat(12)]),
    )
    const long = { name: 'Wolfeschlegelsteinhausenbergerdorff'.repeat(4), claims: JSON.stringify(claims) }
    await makeVerified(app, ada, {
      ...long,
      subject: 'x'.repeat(200),
      email: `${'y'.repeat(100)}@example.org`,
    })
    const { page } = await openConsole(app, browser, '/visitors', { width: 390, height: 844 })
    await rowOf(page, 'Wolfeschlegel').waitFor()
    await expectView(page, 'visitors-long')
    await page.getByRole('link', { name: /Wolfeschlegel/ }).click()
    await page.getByText('claim_11').waitFor()
    await expectView(page, 'visitor-long')
  })

  test('that does not exist is reported as a missing page', async () => {
    const app = await startApp()
    const { page } = await openConsole(app, browser, '/visitors/vis_unknown')
    await page.getByText('This page does not exist').waitFor()
    await page.goto(`${app.url}/console/visitors/vis_unknown?erasure=erase_unknown`)
    await page.getByText('This page does not exist').waitFor()
  })
})
