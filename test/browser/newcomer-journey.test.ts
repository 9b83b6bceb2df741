/**
 * Tests the journey of a newcomer: start, connect a model, create an agent, try it, embed it and see its
 * usage.
 */
import { createServer } from 'node:http'
import type { Browser, BrowserContext, FrameLocator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { askInPlayground, createFromTemplate, openMenuPage, readTable } from '../support/console-parts.ts'
import { openWindow } from '../support/console-ui.ts'
import { listenOnOtherOrigin } from '../support/other-origin.ts'
import { makeFolder, printedLink, startServer } from '../support/process.ts'
import { shareUpstream } from '../support/start-upstream.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 })

const upstream = await shareUpstream()

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

test('a newcomer can start the server, embed a chat in a website and see its usage without handling a parent key', async () => {
  await upstream.script('/v1/models', '{{up:body {"object":"list","data":[{"id":"llama3.2"}]}}}')
  const server = await startServer({ folder: await makeFolder() })
  const { page, context, complaints } = await openWindow(server, browser)
  const [, link = ''] = await server.prints(printedLink)
  await page.goto(link)
  await expectSteps(page, 0)

  await connectOllama(page)
  await openMenuPage(page, 'Agents')
  await expectSteps(page, 1)

  await createFromTemplate(page, 'Helpdesk')
  await page.getByRole('button', { name: 'Try it' }).click()
  await askInPlayground(page, 'Where is my order?')
  await page
    .getByRole('group', { name: 'Answer details' })
    .getByText(/ollama\/llama3\.2/)
    .waitFor()
  await openMenuPage(page, 'Agents')
  await expectSteps(page, 3)

  const widget = await embed(page, context)
  await widget.getByRole('textbox').fill('Hello from the shop')
  await widget.getByRole('textbox').press('Enter')
  await widget.getByText('Upstream heard: Hello from the shop').waitFor()

  await openMenuPage(page, 'Agents')
  await page.getByRole('link', { name: 'Helpdesk' }).waitFor()
  await page.getByRole('link', { name: 'Get started' }).waitFor({ state: 'hidden' })
  await openMenuPage(page, 'Usage')
  expect((await readTable(page, 'Usage by day'))[0]?.slice(1, 3)).toEqual(['2', '0'])
  expect(complaints).toEqual([])
})

/** Checks the number of completed steps, and that the page shows no parent key. */
async function expectSteps(page: Page, count: number): Promise<void> {
  await page.getByRole('region', { name: 'Get started' }).getByText(`${count} of 4 steps complete`).waitFor()
  expect(await page.locator('body').innerText()).not.toContain('svc_')
}

/** Connects a model server that needs no key. */
async function connectOllama(page: Page): Promise<void> {
  const dialog = page.getByRole('dialog')
  await page.getByRole('link', { name: 'Connect model' }).click()
  await page.getByRole('button', { name: /Ollama/ }).click()
  await dialog.getByRole('textbox', { name: 'Base URL' }).fill(upstream.url)
  await dialog.getByRole('button', { name: 'Test', exact: true }).click()
  await dialog.getByText(/Connected: 1 model in \d+ ms/).waitFor()
  await dialog.getByRole('button', { name: 'Add provider' }).click()
  await page.getByText('Provider added').waitFor()
}

/** Copies the embed code to a page on another origin, and opens the chat there. */
async function embed(page: Page, context: BrowserContext): Promise<FrameLocator> {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('link', { name: 'Show embed code' }).click()
  await page.getByRole('button', { name: 'Copy Script' }).click()
  const snippet = await page.evaluate(() => navigator.clipboard.readText())
  const shop = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><html lang="en"><title>A shop</title><body>${snippet}</body></html>`)
  })
  onTestFinished(() => void shop.close())
  const tab = await context.newPage()
  await tab.goto(await listenOnOtherOrigin(shop))
  await tab.locator('parley-chat .launcher').click()
  return tab.frameLocator('parley-chat iframe')
}
