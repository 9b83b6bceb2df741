/** Tests that an administrator connects a model in the console, and uses it without a restart. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAuditRows } from '../support/audit.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { behindProxy } from '../support/console.ts'
import { askInPlayground, openMenuPage, rowOf } from '../support/console-parts.ts'
import { openConsole, openWindow, setTheme } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import { shareUpstream } from '../support/start-upstream.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

const API_KEY = 'sk-test-0123456789-abcd'
const upstream = await shareUpstream()

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())
beforeEach(async () => {
  await upstream.clear()
  const data = ['large', 'small', 'text-embedding-3'].map((id) => ({ id, object: 'model' }))
  await upstream.script('/v1/models', `{{up:body ${JSON.stringify({ object: 'list', data })}}}`)
})

const dialogOf = (page: Page) => page.getByRole('dialog')
const button = (page: Page, name: string) => dialogOf(page).getByRole('button', { name, exact: true })

/** Fills in the form for a server that is not a preset. */
async function fillOther(page: Page, name: string, baseUrl: string): Promise<void> {
  await dialogOf(page).getByRole('textbox', { name: 'Name' }).fill(name)
  await dialogOf(page).getByRole('textbox', { name: 'Base URL' }).fill(baseUrl)
}

test('an administrator adds a provider, tests it, uses it in a chat, changes it and deletes it', async () => {
  const app = await startApp()
  await app.createAgent()
  const { page, complaints } = await openConsole(app, browser)
  const checklist = page.getByRole('region', { name: 'Get started' })
  await checklist.getByRole('link', { name: 'Connect model' }).click()
  await page.getByRole('heading', { name: 'Providers', level: 1 }).waitFor()
  await rowOf(page, 'mock').getByText('Connected').waitFor()
  await expectView(page, 'providers-empty')

  await page.getByRole('button', { name: /Other server/ }).click()
  await fillOther(page, 'near', upstream.url)
  await dialogOf(page).getByLabel('API key', { exact: true }).fill(API_KEY)
  await button(page, 'Test').click()
  await dialogOf(page)
    .getByText(/Connected: 3 models in \d+ ms/)
    .waitFor()
  await dialogOf(page).getByText('text-embedding-3').waitFor()
  await expectView(page, 'providers-add')
  await button(page, 'Add provider').click()
  await page.getByText('Provider added').waitFor()
  await rowOf(page, 'near').getByText('…abcd').waitFor()
  await expectView(page, 'providers')

  await openMenuPage(page, 'Agents')
  await checklist.getByRole('heading', { name: 'Connect a model (complete)' }).waitFor()
  await page.getByRole('link', { name: 'Greeter' }).click()
  await page.getByRole('button', { name: 'Try it' }).click()
  await askInPlayground(page, 'Hello')
  await page
    .getByRole('group', { name: 'Answer details' })
    .getByText(/near\/large/)
    .waitFor()
  expect(await page.getByRole('note', { name: 'Mock model' }).count()).toBe(0)
  const asked = (await upstream.listRequests()).filter(({ path }) => path === '/v1/chat/completions')
  expect(asked.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${API_KEY}`])

  await openMenuPage(page, 'Providers')
  await page.getByRole('button', { name: 'Actions for near' }).click()
  await page.getByRole('menuitem', { name: 'Edit…' }).click()
  await dialogOf(page).getByText('Leave empty to keep the stored key (…abcd)').waitFor()
  await expectView(page, 'providers-edit')
  await dialogOf(page).getByRole('checkbox', { name: 'Remove the stored key' }).check()
  await button(page, 'Save').click()
  await page.getByText('Provider saved').waitFor()
  await rowOf(page, 'near').getByText('None').waitFor()

  await page.getByRole('button', { name: 'Actions for near' }).click()
  await page.getByRole('menuitem', { name: 'Delete…' }).click()
  await button(page, 'Delete provider').click()
  await page.getByText('Provider deleted').waitFor()
  await page.getByRole('heading', { name: 'Connect a model' }).waitFor()
  const actions = (await listAuditRows(app)).map(({ action }) => action)
  expect(actions.filter((action) => action.startsWith('provider.'))).toEqual([
    ...['provider.test', 'provider.create', 'provider.update', 'provider.delete'],
  ])
  expect(complaints).toEqual([])
})

test('a provider can be added from a preset with only the keyboard', async () => {
  const app = await startApp()
  const { page } = await openConsole(app, browser, '/providers')
  await page.getByRole('button', { name: /Ollama/ }).focus()
  await page.keyboard.press('Enter')
  await dialogOf(page).getByRole('textbox', { name: 'Name' }).waitFor()
  const url = dialogOf(page).getByRole('textbox', { name: 'Base URL' })
  expect(await url.inputValue()).toBe('http://127.0.0.1:11434/v1')
  await url.focus()
  await page.keyboard.press('Control+A')
  await page.keyboard.type(upstream.url)
  await page.keyboard.press('Enter')
  await rowOf(page, 'ollama').getByText('Connected').waitFor()
  await dialogOf(page).waitFor({ state: 'hidden' })
})

test('a failed provider test shows the problem, and a rejected provider shows the request id', async () => {
  const app = await startApp()
  const { page } = await openConsole(app, browser, '/providers?add=other')
  await upstream.script('/v1/models', '{{up:status 401}}')
  await fillOther(page, 'mock', upstream.url)
  await button(page, 'Test').click()
  await dialogOf(page)
    .getByText('The provider rejected the API key (status 401). Enter a valid key.')
    .waitFor()
  expect(await listAxeFaults(page)).toEqual([])
  await saveScreenshot(page, 'providers-test-failed')
  await button(page, 'Add provider').click()
  await dialogOf(page).getByText("the server's environment already has a provider 'mock'").waitFor()
  await dialogOf(page).getByText('Request ID').waitFor()
  expect(await dialogOf(page).getByRole('textbox', { name: 'Name' }).getAttribute('aria-invalid')).toBe(
    'true',
  )
  await fillOther(page, 'near', upstream.url)
  await button(page, 'Add provider').click()
  await rowOf(page, 'near').getByText('Failing').waitFor()
  await setTheme(page, 'dark')
  await expectView(page, 'providers-down')
  await page.getByRole('button', { name: 'Actions for near' }).click()
  await page.getByRole('menuitem', { name: 'Test' }).click()
  await dialogOf(page).getByText('Test failed').waitFor()
  await upstream.clear()
  await button(page, 'Test again').click()
  await dialogOf(page)
    .getByText(/Connected: \d+ models?/)
    .waitFor()
  await rowOf(page, 'near').getByText('Connected').waitFor()
})

test('only administrators can open the Providers page', async () => {
  const app = await startApp(behindProxy)
  const { page } = await openWindow(app, browser, { headers: { 'X-Email': 'ada@example.org' } })
  await page.goto(`${app.url}/console/providers`)
  await page.getByText('Administrators only').waitFor()
  expect(await page.getByRole('link', { name: 'Providers' }).count()).toBe(0)
})
