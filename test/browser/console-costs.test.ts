/** Tests the costs that the console shows, and the budget that the Embed page proposes. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { startChatHarness } from '../support/chat-harness.ts'
import { consoleHeaders } from '../support/console.ts'
import { chatInPlayground, readTable } from '../support/console-parts.ts'
import { type OpenedConsole, openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { startMeteredProvider } from '../support/metered-provider.ts'
import { sendChat } from '../support/usage.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const { start } = await startChatHarness()

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

/** Sets a price of 0.001 US dollars for each token of the mock model. */
async function setPrice({ context }: OpenedConsole, url: string): Promise<void> {
  const path = '/v1/manager/admin/prices/mock/mock'
  const data = { per_million: { input: 1_000, output: 1_000 } }
  const answer = await context.request.put(url + path, { headers: consoleHeaders, data })
  expect(answer.status()).toBe(200)
}

test('the usage page shows the cost of calls, and the trial the cost of an answer', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent()
  const opened = await openConsole(app, browser)
  const { page, complaints } = opened
  await setPrice(opened, app.url)
  await sendChat(app, 'Hello.', { model: `agent/${id}` })
  const { body } = await app.call('GET', '/v1/usage')
  const cost = `$${Number(body.total.cost).toFixed(Number(body.total.cost) < 1 ? 3 : 2)}`.replace(
    /(\.\d\d)0$/,
    '$1',
  )
  await page.goto(`${app.url}/console/usage?range=7`)
  const totals = page.getByRole('region', { name: 'Totals' })
  await totals.getByText(cost, { exact: true }).waitFor()
  await totals.getByText(`${cost} per call`).waitFor()
  await page.getByRole('region', { name: 'Cost', exact: true }).waitFor()
  expect((await readTable(page, 'Usage by day'))[0]).toContain(cost)
  await expectView(page, 'usage-cost')
  await page.goto(`${app.url}/console/usage?view=calls`)
  await page.getByRole('table', { name: 'Calls' }).getByText(cost, { exact: true }).waitFor()
  await page.goto(`${app.url}/console/agents/${id}`)
  expect(await chatInPlayground(page, 'Hello.')).toContain('$0.')
  expect(complaints).toEqual([])
})

test('the usage page marks calls of models without a price', async () => {
  const provider = await startMeteredProvider(() => ({ tokens: 5 }))
  const app = await startApp({ PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: provider.url })
  expect((await sendChat(app, 'Hello.', { model: 'spare' })).status).toBe(200)
  const { page } = await openConsole(app, browser, '/usage?view=calls')
  await page.getByRole('table', { name: 'Calls' }).getByText('No price', { exact: true }).waitFor()
  await page.getByRole('radiogroup', { name: 'View' }).getByText('Summary').click()
  await page.getByRole('region', { name: 'Totals' }).getByText('No model has a price').waitFor()
  await page
    .getByRole('table', { name: 'Usage by day' })
    .getByText('1 call without a price')
    .first()
    .waitFor()
})

test('on a phone, a button shows the filters of the usage page and counts those in use', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent()
  await sendChat(app, 'Hello.', { model: `agent/${id}` })
  const { page } = await openConsole(app, browser, `/usage?agent=${id}`, { width: 390 })
  const agent = page.getByRole('combobox', { name: 'Agent' })
  const button = page.getByRole('button', { name: 'Filters 1' })
  await button.waitFor()
  expect(await agent.isVisible()).toBe(false)
  await button.click()
  expect(await button.getAttribute('aria-expanded')).toBe('true')
  await agent.selectOption('All agents')
  await page.getByRole('button', { name: 'Filters', exact: true }).waitFor()
})

test('the embed page proposes a daily budget for an agent that has none', async () => {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent()
  const { page, complaints } = await openConsole(app, browser, `/agents/${id}/embed`)
  await page.getByText('Limit what this agent can spend').waitFor()
  await expectView(page, 'embed-budget')
  const limit = page.getByRole('textbox', { name: 'Daily budget' })
  expect(await limit.inputValue()).toBe('$5')
  await limit.fill('2.5')
  await page.getByRole('button', { name: 'Set daily budget' }).click()
  await page.getByText('Limit what this agent can spend').waitFor({ state: 'hidden' })
  const [budget] = (await app.call('GET', `/v1/budgets?agent=${id}`)).body.data
  expect(budget).toMatchObject({ unit: 'usd', period: 'day', limit: '2.5', mode: 'enforce' })
  expect(complaints).toEqual([])
})

test('the embed page proposes tokens if the model of the agent has no price', async () => {
  const app = await start()
  const { agent_id: id } = await app.createAgent(
    'name: Priceless\ninstructions: Help.\nmodel: nameless-model\n',
  )
  const { page } = await openConsole(app, browser, `/agents/${id}/embed`)
  const limit = page.getByRole('textbox', { name: 'Daily budget' })
  await limit.waitFor()
  expect(await limit.inputValue()).toBe('200 000')
})
