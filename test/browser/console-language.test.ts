/** Tests that the console follows the browser's language and the menu, and mirrors its layout for Arabic. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { type ConsoleOptions, makeSignInUrl, openWindow } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

/** Signs in, in any language, and opens the Keys page. */
async function openKeys(app: TestApp, options: ConsoleOptions): Promise<Page> {
  const { page } = await openWindow(app, browser, options)
  await page.goto(await makeSignInUrl(app))
  await page.waitForURL('**/console/agents')
  await page.goto(`${app.url}/console/keys`)
  await page.getByRole('table').waitFor()
  return page
}

const languageOf = (page: Page) => page.evaluate(() => document.documentElement.lang)
const directionOf = (page: Page) => page.evaluate(() => document.documentElement.dir)
/** Returns the number of pixels by which the page is wider than the window. */
const overflowOf = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

test.each([
  ['de-DE', 'de', 'Schlüssel', 'Zuletzt verwendet'],
  ['es-MX', 'es', 'Claves', 'Último uso'],
  ['fr-FR', 'fr', 'Clés', 'Dernière utilisation'],
  ['it-IT', 'it', 'Chiavi', 'Ultimo utilizzo'],
  ['pt-BR', 'pt', 'Chaves', 'Último uso'],
  ['ja-JP', 'ja', 'キー', '最終使用'],
  ['zh-CN', 'zh', '密钥', '上次使用'],
  ['ar-EG', 'ar', 'المفاتيح', 'آخر استخدام'],
  ['pl-PL', 'en', 'Keys', 'Last used'],
])('with the browser language %s, the console language is %s', async (locale, language, title, column) => {
  const page = await openKeys(await startApp(), { locale })
  await page.getByRole('heading', { name: title, level: 1 }).waitFor()
  await page.getByRole('columnheader', { name: column }).waitFor()
  expect(await languageOf(page)).toBe(language)
  expect(await page.title()).toBe(`${title} · Parley`)
})

test('the language menu changes the language, and the browser remembers it', async () => {
  const page = await openKeys(await startApp(), {})
  await page.getByRole('button', { name: 'Language: English' }).click()
  await page.getByRole('menuitem', { name: 'Deutsch' }).click()
  await page.getByRole('heading', { name: 'Schlüssel', level: 1 }).waitFor()
  await page.getByRole('link', { name: 'Unterhaltungen' }).click()
  await page.getByRole('heading', { name: 'Unterhaltungen', level: 1 }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Unterhaltungen', level: 1 }).waitFor()
  expect(await languageOf(page)).toBe('de')
})

test('relative times are in the language of the console', async () => {
  const page = await openKeys(await startApp(), { locale: 'de-DE' })
  expect(await page.locator('tbody time').first().textContent()).toBe('gerade eben')
})

test.each([1280, 390])('in Arabic, the layout is mirrored and fits a window of %i pixels', async (width) => {
  const page = await openKeys(await startApp(), { locale: 'ar-EG', width })
  expect(await directionOf(page)).toBe('rtl')
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  if (width > 768) {
    const sidebar = await page.locator('.sidebar').boundingBox()
    expect(sidebar?.x).toBeGreaterThan(width / 2)
  }
  expect(await listAxeFaults(page)).toEqual([])
  await saveScreenshot(page, `keys-arabic-${width}`)
  await page.goto(page.url().replace('/keys', '/conversations'))
  await page.getByRole('heading', { name: 'المحادثات', level: 1 }).waitFor()
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  await saveScreenshot(page, `conversations-arabic-${width}`)
})
