/** Checks that a console view is accessible in both themes and on a phone, and that it fits on a phone. */

import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { listAxeFaults } from './axe.ts'
import { setTheme } from './console-ui.ts'
import { saveScreenshot } from './screenshots.ts'

const PHONE = { width: 390, height: 844 }

/** Checks the current view, then sets the light theme and the earlier window size. */
export async function expectView(page: Page, name: string): Promise<void> {
  const viewport = page.viewportSize() ?? PHONE
  for (const colorScheme of ['light', 'dark'] as const) {
    await setTheme(page, colorScheme)
    await saveScreenshot(page, `${name}-${colorScheme}`)
    expect(await listAxeFaults(page)).toEqual([])
  }
  await setTheme(page, 'light')
  await page.setViewportSize(PHONE)
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
  await saveScreenshot(page, `${name}-phone`)
  expect(await listAxeFaults(page)).toEqual([])
  await page.setViewportSize(viewport)
}
