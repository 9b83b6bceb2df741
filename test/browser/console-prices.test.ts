/** Tests that an administrator can set, change and remove model prices in the console. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { behindProxy } from '../support/console.ts'
import { openMenuPage, readTable, rowOf } from '../support/console-parts.ts'
import { openConsole, openWindow } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import { sendChat } from '../support/usage.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

const upstream = await shareUpstream()

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())
beforeEach(async () => {
  await upstream.clear()
  const data = ['large', 'openai/gpt-6-small', 'spare'].map((id) => ({ id, object: 'model' }))
  await upstream.script('/v1/models', `{{up:body ${JSON.stringify({ object: 'list', data })}}}`)
  const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 }
  const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }
  const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage }
  await upstream.script('/v1/chat/completions', `{{up:body ${JSON.stringify(answer)}}}`)
})

const startPriced = () => startApp({ PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: upstream.url })
const dialogOf = (page: Page) => page.getByRole('dialog')
const button = (page: Page, name: string) => dialogOf(page).getByRole('button', { name, exact: true })
const field = (page: Page, name: string) => dialogOf(page).getByRole('textbox', { name, exact: true })
const readPrice = async ({ call }: TestApp, model: string) =>
  (await call('GET', `/v1/prices?model=${model}`)).body

async function openMenuItem(page: Page, model: string, item: string): Promise<void> {
  await page.getByRole('button', { name: `Actions for ${model}` }).click()
  await page.getByRole('menuitem', { name: item }).click()
}

test('an administrator finds an unpriced model, sets its price, changes it and removes it', async () => {
  const app = await startPriced()
  await sendChat(app, 'hello', { model: 'gateway/spare' })
  await app.call('GET', '/v1/usage/calls')
  const { page, complaints } = await openConsole(app, browser, '/agents', { width: 1440 })
  await openMenuPage(page, 'Prices')
  const [first] = await readTable(page, 'Prices')
  expect(first?.slice(0, 5)).toEqual([
    'spare1 request without a price in 30 days',
    ...['gateway', '–', '–', 'No price'],
  ])
  await expectView(page, 'prices')

  await openMenuItem(page, 'gateway/spare', 'Set price…')
  await field(page, 'Input').fill('much')
  await dialogOf(page).getByText('Enter an amount from 0 to 1000000').waitFor()
  expect(await button(page, 'Save').isDisabled()).toBe(true)
  await expectView(page, 'prices-invalid')
  await field(page, 'Input').fill('0,25')
  await field(page, 'Output').fill('2')
  await field(page, 'Applies from').fill('tomorrow')
  await button(page, 'Save').click()
  await dialogOf(page)
    .getByText(/since: must be a date such as/)
    .first()
    .waitFor()
  expect(await field(page, 'Applies from').getAttribute('aria-invalid')).toBe('true')
  await field(page, 'Applies from').fill('')
  await button(page, 'Save').click()
  await page.getByText('Price saved').waitFor()
  await rowOf(page, 'spare').getByText('Console').waitFor()
  expect(await rowOf(page, 'spare').innerText()).toContain('$0.25')
  const entry = { per_million: { input: '0.25', output: '2' } }
  expect(await readPrice(app, 'gateway/spare')).toMatchObject({ source: 'override', entry })

  await openMenuItem(page, 'gateway/spare', 'Change price…')
  expect(await field(page, 'Input').inputValue()).toBe('0.25')
  await dialogOf(page).getByRole('button', { name: 'Edit as JSON' }).click()
  const json = dialogOf(page).getByRole('textbox', { name: 'Price as JSON' })
  await json.fill('{"per_million": ')
  await button(page, 'Save').click()
  await dialogOf(page).getByText('Enter a JSON object or a list of objects').waitFor()
  const dated = [{ per_million: { input: 1 } }, { since: '2026-01-01', per_million: { input: 3 } }]
  await json.fill(JSON.stringify(dated))
  await expectView(page, 'prices-json')
  await button(page, 'Save').click()
  await rowOf(page, 'spare').getByText('$3.00').waitFor()

  await openMenuItem(page, 'gateway/spare', 'Remove price…')
  await button(page, 'Remove price').click()
  await page.getByText('Price removed').waitFor()
  await rowOf(page, 'spare').getByText('No price').waitFor()
  expect(await readPrice(app, 'gateway/spare')).toMatchObject({ priced: false })
  expect(complaints).toEqual([expect.stringContaining('400 (Bad Request)')])
})

test('a price can be set for a model that no provider lists, and the table can be searched and filtered', async () => {
  const app = await startPriced()
  const { page } = await openConsole(app, browser, '/prices')
  await page.getByRole('button', { name: 'Set price' }).click()
  await dialogOf(page).getByRole('combobox', { name: 'Provider' }).selectOption('gateway')
  await field(page, 'Model').fill('tuned/mine')
  await field(page, 'Input').fill('1')
  await field(page, 'Per request').fill('0.001')
  await expectView(page, 'prices-set')
  await page.keyboard.press('Enter')
  await page.getByText('Price saved').waitFor()
  await rowOf(page, 'tuned/mine').waitFor()
  await page.getByRole('combobox', { name: 'Source' }).selectOption('override')
  await expect.poll(async () => (await readTable(page, 'Prices')).length).toBe(1)
  await page.getByRole('combobox', { name: 'Source' }).selectOption('')
  await page.getByRole('textbox', { name: 'Search prices' }).fill('gpt-6')
  await rowOf(page, 'openai/gpt-6-small').waitFor()
  await expect.poll(async () => (await readTable(page, 'Prices')).length).toBe(1)
  expect(await listAxeFaults(page)).toEqual([])
})

test('the page marks models that are metered by bytes, and an administrator clears the metering', async () => {
  const app = await startPriced()
  const until = Math.floor(Date.now() / 1000) + 86_400
  const meter = { provider: 'gateway', model: 'spare', metering: 'bytes', reason: 'output', until } as const
  app.service.deps.meters.set(meter)
  await app.service.deps.meters.settled()
  const { page } = await openConsole(app, browser, '/prices')
  await rowOf(page, 'spare')
    .getByText(/^Metered by bytes until /)
    .waitFor()
  expect(await listAxeFaults(page)).toEqual([])
  await openMenuItem(page, 'gateway/spare', 'Clear metering…')
  await button(page, 'Clear metering').click()
  await page.getByText('Metering cleared').waitFor()
  await expect.poll(() => page.getByText(/^Metered by bytes/).count()).toBe(0)
  expect(app.service.deps.meters.list()).toEqual([])
})

test('only administrators see the page in the navigation', async () => {
  const app = await startApp({ ...behindProxy, PARLEY_ADMIN_EMAILS: 'root@example.org' })
  const { page } = await openWindow(app, browser, { headers: { 'X-Email': 'ada@example.org' } })
  await page.goto(`${app.url}/console/prices`)
  await page.getByText('Ask your administrator to set prices.').waitFor()
  const navigation = page.getByRole('navigation', { name: 'Pages' })
  expect(await navigation.getByRole('link', { name: 'Prices' }).count()).toBe(0)
})
