/**
 * Saves screenshots of pages. Loads no browser, because tests that need none use helpers that import this file.
 */
import { mkdir } from 'node:fs/promises'
import type { Page } from 'playwright-core'

/** Saves a screenshot for manual review, only if SAVE_SCREENSHOTS is set, because it takes long. */
export async function saveScreenshot(page: Page, name: string): Promise<void> {
  if (process.env.SAVE_SCREENSHOTS === undefined) return
  await mkdir('screenshots', { recursive: true })
  await page.screenshot({ path: `screenshots/${name}.png`, fullPage: true, animations: 'disabled' })
}
