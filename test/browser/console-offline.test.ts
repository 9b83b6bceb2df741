/** Tests the console while the browser is offline. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole, openWindow, signIn } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

test('a page opened offline says that the browser is offline, and loads automatically when it is online again', async () => {
  const app = await startApp()
  const { page, context } = await openConsole(app, browser)
  // The scripts of all pages are loaded when no script has been requested for two seconds.
  await page.waitForFunction(
    () => {
      const scripts = performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'))
      const last = Math.max(...scripts.map((script) => (script as PerformanceResourceTiming).responseEnd))
      return performance.now() - last > 2_000
    },
    undefined,
    { polling: 200 },
  )
  await context.setOffline(true)
  const pages = page.getByRole('navigation', { name: 'Pages' })
  for (const name of ['Usage', 'Files', 'Conversations']) {
    await pages.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    await page.getByRole('alert').getByText('You are offline').waitFor()
  }
  await saveScreenshot(page, 'offline-page')
  expect(await listAxeFaults(page)).toEqual([])
  await context.setOffline(false)
  await page.getByText('No conversations yet').waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
})

test('a page whose script was not loaded before the browser went offline loads when it is online again', async () => {
  const app = await startApp()
  const { page, context } = await openWindow(app, browser)
  // In browsers that save data, the console does not preload scripts.
  await page.addInitScript(() =>
    Object.defineProperty(navigator, 'connection', {
      value: Object.assign(new EventTarget(), { saveData: true }),
    }),
  )
  await signIn(app, page)
  await context.setOffline(true)
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Files' }).click()
  await page.getByRole('alert').getByText('This page will load').waitFor()
  await context.setOffline(false)
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor()
  await page.getByText('No files yet').waitFor()
})
