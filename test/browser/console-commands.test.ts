/** Tests the console's command palette and keyboard shortcuts. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

async function openWithAgent() {
  const app = await startApp()
  const agent = await app.createAgent('name: Concierge\ninstructions: You help guests.\n')
  const opened = await openConsole(app, browser)
  await opened.page.getByRole('link', { name: 'Concierge' }).waitFor()
  return { app, agent, ...opened }
}

async function openPalette(page: Page) {
  await page.keyboard.press('Control+k')
  const field = page.getByLabel('Search for a command')
  await field.waitFor({ timeout: 10_000 })
  return field
}

describe('the command palette', () => {
  test('opens a page by name and has no accessibility violations', async () => {
    const { page, complaints } = await openWithAgent()
    const field = await openPalette(page)
    expect(await listAxeFaults(page)).toEqual([])
    await field.fill('usage')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
    expect(complaints).toEqual([])
  })

  test('opens an agent by name, even from a text field', async () => {
    const { page, agent } = await openWithAgent()
    await page.getByLabel('Search agents').focus()
    await (await openPalette(page)).fill('concierge')
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname === `/console/agents/${agent.agent_id}`)
  })

  test("copies an agent's embed code and confirms it", async () => {
    const { page, context, app, agent } = await openWithAgent()
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: app.url })
    await (await openPalette(page)).fill('copy embed')
    await page.keyboard.press('Enter')
    await page.getByText('Embed code copied').waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(agent.agent_key)
  })

  test('opens the dialogs that create a key, a webhook and a provider, and the first steps', async () => {
    const { page, complaints } = await openWithAgent()
    const choose = async (name: string) => {
      await (await openPalette(page)).fill(name)
      await page.getByRole('button', { name, exact: true }).waitFor()
      await page.keyboard.press('Enter')
    }
    await choose('New key')
    await page.getByRole('dialog', { name: 'Create parent key' }).getByLabel('Name').fill('CI')
    await page.keyboard.press('Escape')
    await expect.poll(() => page.url()).not.toContain('add')
    await choose('New webhook')
    await page.getByRole('dialog', { name: 'Create webhook' }).waitFor()
    await page.keyboard.press('Escape')
    await choose('Connect a model')
    await page.getByRole('dialog', { name: 'Add provider' }).waitFor()
    await page.keyboard.press('Escape')
    await choose('Get started')
    await page.getByRole('heading', { name: 'Get started', level: 1 }).waitFor()
    expect(complaints).toEqual([])
  })

  test('finds pages of the documentation', async () => {
    const { page } = await openWithAgent()
    await (await openPalette(page)).fill('backup')
    await page
      .getByRole('button', { name: /Backup/ })
      .first()
      .waitFor()
  })
})

describe('the keyboard shortcut', () => {
  test('`/` focuses the search field', async () => {
    const { page } = await openWithAgent()
    await page.getByLabel('Search agents').waitFor()
    await page.keyboard.press('/')
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label')))
      .toBe('Search agents')
  })

  test('`?` shows the list of keyboard shortcuts', async () => {
    const { page } = await openWithAgent()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  })
})
