/** Tests the console's loading and error states and its keyboard operation. */
import type { Browser, Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

test.each([
  ['/keys?tab=agent', 'agents.list', 'the agent keys', 'The agent keys', 'No agent keys'],
  ['/uploads', 'artifacts.list', 'the uploads', 'The uploads', 'No uploads yet'],
  ['/conversations', 'conversations.list', 'the conversations', 'The conversations', 'No conversations yet'],
  ['/files', 'files.list', 'the files', 'The files', 'No files yet'],
  ['/usage', 'usage.list', 'the usage', 'The usage', 'No calls in this period'],
  ['/admin', 'admin.users', 'the users', 'The users', 'Administrator'],
  ['/admin?tab=keys', 'admin.keys', 'the keys', 'The keys', 'No limit'],
  ['/admin?tab=audit', 'admin.audit', 'the entries', 'The entries', 'Parent key created'],
])(
  '%s shows a loading state, then an error if the request fails, and data after a retry',
  async (path, operation, waited, failed, found) => {
    const app = await startApp()
    const { page } = await openConsole(app, browser)
    const waiting = Promise.withResolvers<void>()
    await page.route(new RegExp(`/trpc/.*${operation}`), async (route) => {
      await waiting.promise
      await route.abort()
    })
    await page.goto(`${app.url}/console${path}`)
    await page.getByRole('status', { name: `Loading ${waited}` }).waitFor()
    const name = operation.replace('.', '-')
    await expectView(page, `loading-${name}`)
    waiting.resolve()
    await page.getByText(`${failed} could not be loaded`).waitFor()
    expect(await page.getByText('The server cannot be reached.').isVisible()).toBe(true)
    await expectView(page, `offline-${name}`)
    await page.unroute(new RegExp(`/trpc/.*${operation}`))
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText(found, { exact: true }).filter({ visible: true }).first().waitFor()
  },
)

test('a user can create a key with only the keyboard, and closing the dialog restores the focus', async () => {
  const app = await startApp()
  const { page } = await openConsole(app, browser, '/keys')
  const tab = page.getByRole('tab', { name: 'Parent keys' })
  await tab.focus()
  await page.keyboard.press('ArrowRight')
  await page.getByText('No agent keys').waitFor()
  await page.keyboard.press('ArrowLeft')
  const create = page.getByRole('button', { name: 'Create key' })
  await create.waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await untilFocused(create)
  await page.keyboard.press('Enter')
  const name = page.getByLabel('Name')
  await untilFocused(name)
  await page.keyboard.press('Escape')
  await untilFocused(create)
  await page.keyboard.press('Enter')
  await untilFocused(name)
  await page.keyboard.type('By hand')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'I have copied it' }).press('Enter')
  await page.getByRole('cell', { name: 'By hand', exact: true }).waitFor()
})

test('the console shows an error if switching keys or loading the model list fails', async () => {
  const app = await startApp()
  const { agent_id } = await app.createAgent()
  const { page } = await openConsole(app, browser, '/keys')
  await page.route(/manager\.activeKey|models\.choices/, (route) => route.abort())
  await page.getByRole('button', { name: 'first', exact: true }).click()
  await page.getByRole('menuitem', { name: /^first/ }).click()
  const alert = page.getByRole('alert')
  await alert.getByText('The server cannot be reached.').waitFor()
  await expectView(page, 'not-done')
  await alert.getByRole('button', { name: 'Close' }).click()
  await alert.waitFor({ state: 'detached' })

  await page.goto(`${app.url}/console/agents/${agent_id}/models`)
  await page.getByText('The list of models could not be loaded').waitFor()
  expect(await page.getByLabel('Answer limit').isEnabled()).toBe(true)
  await page.unroute(/manager\.activeKey|models\.choices/)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('The list of models could not be loaded').waitFor({ state: 'detached' })
})

test('a file dropped on the uploads page is uploaded', async () => {
  const app = await startApp()
  const { page, complaints } = await openConsole(app, browser, '/uploads')
  await page.getByText('Drop files here').waitFor()
  const files = await page.evaluateHandle(() => {
    const transfer = new DataTransfer()
    transfer.items.add(new File(['0123456789'], 'scene.bin'))
    return transfer
  })
  await page.locator('.drop-zone').dispatchEvent('drop', { dataTransfer: files })
  await page
    .getByRole('row', { name: /scene\.bin/ })
    .getByText(/^Ready/)
    .waitFor()
  const { data } = (await app.call('GET', '/v1/artifacts')).body
  expect(data).toMatchObject([{ filename: 'scene.bin', kind: 'project', state: 'ready' }])
  expect(complaints).toEqual([])
})

async function untilFocused(locator: Locator): Promise<void> {
  await expect.poll(() => locator.evaluate((one) => one === document.activeElement)).toBe(true)
}
