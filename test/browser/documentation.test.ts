/** Tests the documentation's HTML pages in a browser, and how the console's search finds them. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole, openWindow } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const cases = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [1440, 390].map((width) => ({ colorScheme, width })),
)

describe('the documentation', () => {
  test.each(cases)(
    'fits the window and has no accessibility violations ($colorScheme, $width px wide)',
    async ({ colorScheme, width }) => {
      const app = await startApp()
      const { page, complaints } = await openWindow(app, browser, { colorScheme, width })
      for (const name of ['widget', 'agents', 'console']) {
        await page.goto(`${app.url}/docs/${name}`)
        expect(await listAxeFaults(page)).toEqual([])
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width)
        await saveScreenshot(page, `documentation-${name}-${colorScheme}-${width}`)
      }
      expect(complaints).toEqual([])
    },
  )

  test('lists the pages, marks the current one, and links to its sections', async () => {
    const app = await startApp()
    const { page } = await openWindow(app, browser, { width: 1440 })
    await page.goto(`${app.url}/docs/getting-started`)
    const pages = page.getByRole('navigation', { name: 'Documentation' })
    await pages.getByRole('link', { name: 'Widget', exact: true }).click()
    await page.getByRole('heading', { name: 'Widget', level: 1 }).waitFor()
    expect(await pages.locator('[aria-current=page]').innerText()).toBe('Widget')
    const contents = page.getByRole('navigation', { name: 'On this page' })
    await contents.getByRole('link', { name: 'Proactive rules' }).click()
    expect(new URL(page.url()).hash).toBe('#proactive-rules')
    expect(await page.getByRole('heading', { name: 'Proactive rules' }).isVisible()).toBe(true)
  })

  test("is found by its headings in the console's search", async () => {
    const { page, context } = await openConsole(await startApp(), browser)
    await page.keyboard.press('Control+k')
    await page.getByLabel('Search for a command').fill('proactive')
    await page.getByRole('button', { name: /Proactive rules/ }).waitFor()
    const [opened] = await Promise.all([context.waitForEvent('page'), page.keyboard.press('Enter')])
    await opened.getByRole('heading', { name: 'Proactive rules' }).waitFor()
    expect(new URL(opened.url()).pathname).toBe('/docs/widget')
  })
})
