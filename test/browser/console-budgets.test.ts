/** Tests the console's budget pages: the list, one budget, its dialogs and the notices on other pages. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { consoleHeaders } from '../support/console.ts'
import { openMenuPage, rowOf } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { sendChat } from '../support/usage.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const dialogOf = (page: Page) => page.getByRole('dialog')
const buttonOf = (page: Page, name: string) => dialogOf(page).getByRole('button', { name, exact: true })

async function createBudget(app: TestApp, body: object): Promise<{ readonly id: string }> {
  const answer = await app.call('POST', '/v1/budgets', { body })
  expect(answer.status).toBe(201)
  return answer.body
}

async function readBudget(app: TestApp, id: string) {
  return (await app.call('GET', `/v1/budgets/${id}`)).body
}

const keyOf = (app: TestApp) => app.key.slice(4, 16)

describe('the budget list', () => {
  test('is empty at first, and a budget can be created with only the keyboard', async () => {
    const app = await startApp()
    await app.createAgent()
    const { page, complaints } = await openConsole(app, browser, '/agents', { width: 1440 })
    await openMenuPage(page, 'Budgets')
    await page.getByText('No budgets yet').waitFor()
    await expectView(page, 'budgets-empty')
    await page.getByRole('button', { name: 'Create budget' }).focus()
    await page.keyboard.press('Enter')
    const scope = dialogOf(page).getByRole('combobox', { name: 'Applies to' })
    await expect.poll(() => scope.evaluate((input) => input === document.activeElement)).toBe(true)
    await page.keyboard.press('Tab')
    await page.keyboard.type('Greeter')
    await dialogOf(page).page().getByRole('option', { name: 'Greeter' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Tab')
    await page.keyboard.type('5000')
    await page.keyboard.press('Enter')
    await dialogOf(page).waitFor({ state: 'hidden' })
    await rowOf(page, 'Greeter').getByText('5,000 tokens per day').waitFor()
    expect(complaints).toEqual([])
  })

  test('explains each missing or rejected field of a new budget', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    await createBudget(app, { scope: { type: 'key', id: keyOf(app) }, period: 'day', limit: '5000' })
    const { page } = await openConsole(app, browser, '/budgets?add=true', { width: 1440 })
    const limit = dialogOf(page).getByRole('textbox', { name: 'Limit' })
    const agent = dialogOf(page).getByRole('combobox', { name: 'Agent' })
    await dialogOf(page).getByRole('radio', { name: 'Tokens' }).check()
    await limit.fill('2000000000000')
    await dialogOf(page).getByRole('textbox', { name: 'Thresholds' }).fill('50, 120')
    await buttonOf(page, 'Create budget').click()
    await dialogOf(page).getByText('Select an agent.').waitFor()
    expect(await agent.getAttribute('aria-invalid')).toBe('true')
    await dialogOf(page).getByText('Enter whole numbers from 1 to 100').waitFor()
    await dialogOf(page).getByRole('textbox', { name: 'Thresholds' }).fill('90, 50')
    await agent.fill('Greeter')
    await page.getByRole('option', { name: 'Greeter' }).click()
    await buttonOf(page, 'Create budget').click()
    await dialogOf(page)
      .getByText(/must be a whole number/)
      .waitFor()
    await expectView(page, 'budget-create')
    await dialogOf(page).getByRole('combobox', { name: 'Applies to' }).click()
    await page.getByRole('option', { name: 'Each conversation' }).click()
    await limit.fill('100')
    await buttonOf(page, 'Create budget').click()
    await dialogOf(page).getByText('this agent does not store conversations').waitFor()
    await dialogOf(page).getByRole('combobox', { name: 'Applies to' }).click()
    await page.getByRole('option', { name: 'This key' }).click()
    await buttonOf(page, 'Create budget').click()
    await dialogOf(page).getByText('There is already a budget with this scope').waitFor()
    expect((await app.call('GET', `/v1/budgets?agent=${id}`)).body.data).toEqual([])
  })

  test('shows how much is used, who set each budget, and how many calls it has rejected or would have rejected', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const other = await app.createAgent('name: Watcher\ninstructions: Watch.\n')
    const scope = { type: 'agent', id }
    const full = await createBudget(app, { scope, period: 'day', limit: '300' })
    const watched = { scope: { type: 'agent', id: other.agent_id }, mode: 'observe' }
    await createBudget(app, { ...watched, period: 'week', limit: '1' })
    await app.call('POST', `/v1/budgets/${full.id}/adjustments`, { body: { amount: '300', reason: 'test' } })
    await sendChat(app, 'Hello.', { model: `agent/${id}` })
    await sendChat(app, 'Hello.', { model: `agent/${other.agent_id}` })
    const { page, context, complaints } = await openConsole(app, browser, '/agents', { width: 1440 })
    const path = `/v1/manager/admin/keys/${keyOf(app)}/budgets`
    const data = { budgets: [{ period: 'month', limit: '1000000' }] }
    const set = await context.request.put(app.url + path, { headers: consoleHeaders, data })
    expect(set.status()).toBe(200)
    await page.goto(`${app.url}/console/budgets`)
    const row = rowOf(page, 'Greeter')
    await row.getByText('300 of 300 tokens').waitFor()
    const meter = row.getByRole('meter', { name: 'Greeter' })
    expect(await meter.getAttribute('aria-valuetext')).toBe(
      '100% used: 300 tokens booked, 0 reserved, limit 300 tokens',
    )
    await row.getByText('Used up').waitFor()
    await row.getByText('Rejected 1 call in this period').waitFor()
    await rowOf(page, 'Watcher').getByText('Would have rejected 1 call in this period').waitFor()
    await rowOf(page, 'Watcher').getByText('Only counts').waitFor()
    await rowOf(page, 'This key').getByText('Set by an administrator').waitFor()
    await page.getByRole('link', { name: '1 budget is used up' }).waitFor()
    await expectView(page, 'budgets')
    await page.getByRole('button', { name: /Actions for This key/ }).click()
    await page.getByRole('menuitem', { name: 'View calls' }).waitFor()
    expect(await page.getByRole('menuitem', { name: /Edit|Delete|Raise|Correct/ }).count()).toBe(0)
    await page.keyboard.press('Escape')
    await page.goto(`${app.url}/console/agents/${id}/models`)
    await page.getByText(/A budget of this agent is used up/).waitFor()
    await page.getByRole('link', { name: 'View budget' }).click()
    await page.getByRole('heading', { name: 'Greeter', level: 1 }).waitFor()
    expect(complaints).toEqual([])
  })
})

describe('a budget', () => {
  test('in US dollars shows amounts of money, and can have a limit below one cent', async () => {
    const app = await startApp()
    await app.createAgent()
    const { page, complaints } = await openConsole(app, browser, '/budgets?add=true', { width: 1440 })
    await dialogOf(page).getByRole('combobox', { name: 'Agent' }).fill('Greeter')
    await page.getByRole('option', { name: 'Greeter' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Limit' }).fill('0.0000005')
    await buttonOf(page, 'Create budget').click()
    await dialogOf(page).waitFor({ state: 'hidden' })
    await rowOf(page, 'Greeter').getByText('$0.0000005 per day').waitFor()
    const [budget] = (await app.call('GET', '/v1/budgets')).body.data
    expect(budget).toMatchObject({ unit: 'usd', limit: '0.0000005', warn_at: [50, 80, 100] })
    await app.call('PATCH', `/v1/budgets/${budget.id}`, { body: { limit: '25' } })
    const body = { amount: '18.2', reason: 'test' }
    await app.call('POST', `/v1/budgets/${budget.id}/adjustments`, { body })
    await page.reload()
    await rowOf(page, 'Greeter').getByText('$18.20 of $25.00').waitFor()
    await rowOf(page, 'Greeter').getByText('$6.80', { exact: true }).waitFor()
    expect(complaints).toEqual([])
  })

  test('can be raised, corrected, changed and deleted, and links to its calls', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const scope = { type: 'agent', id }
    const budget = await createBudget(app, { scope, period: 'month', limit: '100000' })
    await sendChat(app, 'Hello.', { model: `agent/${id}` })
    const { page, complaints } = await openConsole(app, browser, '/budgets', { width: 1440 })
    await page.getByRole('link', { name: 'Greeter' }).click()
    await page.getByRole('heading', { name: 'Greeter', level: 1 }).waitFor()
    await expectView(page, 'budget')
    await page.getByRole('button', { name: 'Raise limit' }).click()
    expect(await buttonOf(page, 'Raise limit').isDisabled()).toBe(true)
    await dialogOf(page).getByRole('textbox', { name: 'Amount' }).fill('5000')
    await dialogOf(page).getByRole('textbox', { name: 'Reason' }).fill('Launch week')
    await dialogOf(page).getByLabel('Expires').fill('2020-01-01T00:00')
    await buttonOf(page, 'Raise limit').click()
    await dialogOf(page).getByText('must be in the future').waitFor()
    await expectView(page, 'budget-raise')
    await dialogOf(page).getByLabel('Expires').fill('')
    await buttonOf(page, 'Raise limit').click()
    await dialogOf(page).waitFor({ state: 'hidden' })
    await page.getByText('of 105,000 tokens').waitFor()

    const openMenu = async (name: string) => {
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name }).click()
    }
    await openMenu('Correct booked amount…')
    await dialogOf(page).getByRole('textbox', { name: 'Amount' }).fill('-200000')
    await dialogOf(page).getByRole('textbox', { name: 'Reason' }).fill('Refund')
    await buttonOf(page, 'Correct booked amount').click()
    await dialogOf(page).getByText('must not make the booked amount negative').waitFor()
    await dialogOf(page).getByRole('textbox', { name: 'Amount' }).fill('90000')
    await buttonOf(page, 'Correct booked amount').click()
    await dialogOf(page).waitFor({ state: 'hidden' })
    await page.getByText('85% used', { exact: true }).waitFor()

    await openMenu('Edit…')
    await dialogOf(page).getByRole('textbox', { name: 'Limit' }).fill('200000')
    await dialogOf(page).getByRole('radio', { name: 'Only counts' }).check()
    await buttonOf(page, 'Save').click()
    await dialogOf(page).waitFor({ state: 'hidden' })
    await page.getByText('200,000 tokens per month').waitFor()
    expect(await readBudget(app, budget.id)).toMatchObject({
      limit: '200000',
      mode: 'observe',
      granted: '5000',
    })

    await page.getByRole('link', { name: 'View calls' }).click()
    await page.getByRole('table', { name: 'Calls' }).waitFor()
    expect(page.url()).toContain(`agent=${id}`)
    expect(await page.getByRole('table', { name: 'Calls' }).locator('tbody tr').count()).toBe(1)
    await page.goBack()
    await openMenu('Delete…')
    await buttonOf(page, 'Delete budget').click()
    await page.getByText('No budgets yet').waitFor()
    expect(complaints.filter((text) => !/40[04]/.test(text))).toEqual([])
  })

  test('for visitors lists pseudonyms by amount, largest first, and warns about addresses', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const budget = await createBudget(app, { scope: { type: 'visitor', id }, period: 'day', limit: '50000' })
    const { page, complaints } = await openConsole(app, browser, `/budgets/${budget.id}`, { width: 1440 })
    await page.getByText('No visitor has used this budget in the current period').waitFor()
    const chat = (user: string, text: string) => sendChat(app, text, { model: `agent/${id}`, user })
    await chat('ada', 'Hello.')
    await chat('bob', 'Hello again. '.repeat(20))
    const { body } = await app.call('GET', `/v1/budgets/${budget.id}/subjects`)
    await page.reload()
    await page.getByText('An address (for IPv6, a /64 network) does not prove identity').waitFor()
    const rows = page.getByRole('table', { name: 'Visitors' }).locator('tbody tr')
    await rows.nth(1).waitFor()
    expect(await rows.locator('code').allInnerTexts()).toEqual(
      body.data.map(({ subject }: { subject: string }) => subject),
    )
    await expectView(page, 'budget-visitors')
    await page.getByRole('button', { name: `Actions for ${body.data[0].subject}` }).click()
    await page.getByRole('menuitem', { name: 'Raise limit…' }).click()
    await dialogOf(page).getByRole('textbox', { name: 'Amount' }).fill('1000')
    await dialogOf(page).getByRole('textbox', { name: 'Reason' }).fill('A long conversation')
    await buttonOf(page, 'Raise limit').click()
    await dialogOf(page).waitFor({ state: 'hidden' })
    await rows.first().getByText('of 51,000 tokens').waitFor()
    expect(complaints).toEqual([])
  })
})
