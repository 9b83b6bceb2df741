/** Tests the confirmations of actions and the request ids of errors. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

test('a view that cannot be loaded shows the id of the failed request, which can be copied', async () => {
  const app = await startApp()
  const { page, context } = await openConsole(app, browser)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  // Sends the request to an operation that does not exist, so that the server returns an error.
  await page.route('**/trpc/usage.list*', (route) =>
    route.continue({ url: route.request().url().replaceAll('usage.list', 'usage.missing') }),
  )
  // An idle page may load the usage in advance, so the page can make several requests.
  const ids: string[] = []
  page.on('response', (response) => {
    if (response.status() === 404) ids.push(response.headers()['x-request-id'] ?? 'missing')
  })
  await page.goto(`${app.url}/console/usage`)
  const alert = page.getByRole('alert').filter({ hasText: 'Request ID' })
  await alert.waitFor()
  const text = await alert.innerText()
  const id = ids.find((each) => text.includes(each))
  expect(id).toBeDefined()
  await page.getByRole('button', { name: 'Copy request ID' }).click()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(id)
  await saveScreenshot(page, 'request-id-light')
  expect(await listAxeFaults(page)).toEqual([])
})

test('a dialog whose action fails shows the request id', async () => {
  const app = await startApp()
  const { page } = await openConsole(app, browser, '/keys', { colorScheme: 'dark' })
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.route('**/trpc/manager.createKey*', (route) =>
    route.continue({ url: route.request().url().replace('createKey', 'missing') }),
  )
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Shop')
  const answer = page.waitForResponse((response) => response.status() === 404)
  await dialog.getByRole('button', { name: 'Create' }).click()
  const id = (await answer).headers()['x-request-id'] ?? ''
  await dialog.getByRole('alert').getByText(id).waitFor()
  await saveScreenshot(page, 'request-id-dialog-dark')
  expect(await listAxeFaults(page)).toEqual([])
})

test.each(['light', 'dark'] as const)('an action is confirmed by a message (%s)', async (colorScheme) => {
  const app = await startApp()
  const { agent_id } = await app.createAgent()
  const { page, context, complaints } = await openConsole(app, browser, `/agents/${agent_id}`, {
    colorScheme,
  })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Copy agent ID' }).click()
  await page.getByText('Agent ID copied').waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(agent_id)
  await page.getByRole('menu').waitFor({ state: 'hidden' })
  await saveScreenshot(page, `toast-${colorScheme}`)
  expect(await listAxeFaults(page)).toEqual([])
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete agent' }).click()
  await page.getByText('Agent moved to the bin').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Agent restored').waitFor()
  expect((await app.call('GET', `/v1/agents/${agent_id}`)).status).toBe(200)
  expect(complaints).toEqual([])
})
