/** Tests the console's administration pages: users, keys, budgets, usage and the audit log. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { behindProxy, readMe, revealKey } from '../support/console.ts'
import { openWindow } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { sendChat } from '../support/usage.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const [root, ada] = ['root@example.org', 'ada@example.org']
const environment = { ...behindProxy, PARLEY_ADMIN_EMAILS: root }

/** Starts a service in which Ada has made two calls, and opens the console as the administrator. */
async function openAdmin(path: string) {
  const app = await startApp(environment)
  await readMe(app, ada)
  const key = await revealKey(app, ada)
  await sendChat(app, 'one two three', {}, key)
  await sendChat(app, 'four', {}, key)
  const opened = await openWindow(app, browser, { headers: { 'X-Email': root } })
  await opened.page.goto(`${app.url}/console/admin${path}`)
  return { app, key, id: key.slice(4, 16), ...opened }
}

test('an administrator sets a budget, views usage, revokes a key, and finds the revocation in the audit log', async () => {
  const { app, key, id, page, complaints } = await openAdmin('?tab=keys')
  await page.getByRole('button', { name: `Actions for ${ada}` }).click()
  await page.getByRole('menuitem', { name: 'Set budget…' }).click()
  const addBudget = async (number: number, period: string, limit: string) => {
    await page.getByRole('button', { name: 'Add budget' }).click()
    const budget = page.getByRole('group', { name: `Budget ${number}` })
    await budget.getByLabel('Unit').selectOption('Tokens')
    await budget.getByRole('textbox', { name: 'Limit' }).fill(limit)
    await budget.getByLabel('Period').selectOption(period)
  }
  await addBudget(1, 'Day', '1')
  await addBudget(2, 'Day', '50000')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('the list already has a budget for each day').waitFor()
  await page.getByRole('group', { name: 'Budget 2' }).getByLabel('Period').selectOption('Month')
  await expectView(page, 'admin-budget')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText(/of 50,000 this month/).waitFor()
  expect((await sendChat(app, 'five', {}, key)).status).toBe(429)
  await expectView(page, 'admin-keys')

  await page.getByRole('button', { name: `Actions for ${ada}` }).click()
  await page.getByRole('menuitem', { name: 'View usage' }).click()
  await page.getByRole('table', { name: 'Usage by day' }).waitFor()
  expect(page.url()).toContain(`key=${id}`)
  await expectView(page, 'admin-usage')

  await page.getByRole('tab', { name: 'Keys' }).click()
  await page.getByRole('button', { name: `Actions for ${ada}` }).click()
  await page.getByRole('menuitem', { name: 'Revoke…' }).click()
  await page.getByRole('textbox', { name: `Type ${ada} to confirm` }).fill(ada)
  await page.getByRole('button', { name: 'Revoke key' }).click()
  await page.getByRole('row', { name: new RegExp(`${ada}.*Revoked`) }).waitFor()
  expect((await app.call('GET', '/v1/keys/validate', { key })).status).toBe(401)

  await page.getByRole('tab', { name: 'Audit log' }).click()
  await page.getByRole('table', { name: 'Audit log' }).waitFor()
  await expectView(page, 'admin-audit')
  await page.getByLabel('Action', { exact: true }).selectOption('Parent key revoked')
  const rows = page.getByRole('table', { name: 'Audit log' }).locator('tbody tr')
  await expect.poll(() => rows.count()).toBe(1)
  expect(await rows.innerText()).toContain(id)
  expect(await rows.innerText()).toContain(root)
  expect(page.url()).toContain('action=key.revoke')
  await page.reload()
  await expect.poll(() => rows.count()).toBe(1)
  await page.getByLabel('Target', { exact: true }).fill('nobody')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.getByText('No matching entries').waitFor()
  await page.getByRole('button', { name: 'Clear', exact: true }).click()
  await expect.poll(() => rows.count()).toBeGreaterThan(2)
  expect(complaints.filter((text) => !text.includes('400'))).toEqual([])
})

test('the administration pages list users with their keys and the usage of all tenants by key', async () => {
  const { page, complaints } = await openAdmin('')
  await page.getByRole('row', { name: new RegExp(`${root}.*Administrator`) }).waitFor()
  expect(await page.getByRole('row', { name: new RegExp(ada) }).innerText()).toContain('(active)')
  await expectView(page, 'admin-users')
  await page.getByRole('tab', { name: 'Usage' }).click()
  await page.getByRole('radiogroup', { name: 'Group by' }).getByText('Key').click()
  const table = page.getByRole('table', { name: 'Usage by key' })
  await table.waitFor()
  expect(await table.locator('tbody tr').innerText()).toMatch(new RegExp(`^${ada}\\s+2\\s`))
  expect(page.url()).toContain('tab=usage')
  expect(complaints).toEqual([])
})

test('the administration pages deny access to users who are not administrators', async () => {
  const app = await startApp(environment)
  const { page } = await openWindow(app, browser, { headers: { 'X-Email': ada } })
  await page.goto(`${app.url}/console/admin?tab=keys`)
  await page.getByText('Administrators only').waitFor()
  await expectView(page, 'admin-refused')
})
