/** Compares the design system page with committed screenshots. Set UPDATE_PICTURES=1 to replace them. */
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import pixelmatch from 'pixelmatch'
import type { Browser } from 'playwright-core'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const folder = fileURLToPath(new URL('../support/pictures', import.meta.url))
/** Tolerates differences between versions of Chromium, which smooth the edges of letters differently. */
const MAX_DIFFERENT_SHARE = 0.01

async function readPixels(picture: Buffer) {
  const { data, info } = await sharp(picture).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  return { data, width: info.width, height: info.height }
}

/** Returns the share of different pixels; 1 for pictures with different sizes. */
async function compare(actual: Buffer, expected: Buffer): Promise<number> {
  const [one, other] = await Promise.all([readPixels(actual), readPixels(expected)])
  const { width, height } = one
  if (width !== other.width || height !== other.height) return 1
  return pixelmatch(one.data, other.data, undefined, width, height, { threshold: 0.2 }) / (width * height)
}

const cases = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [1280, 390].map((width) => ({ colorScheme, width })),
)

describe('the design system page', () => {
  test.each(cases)(
    'matches the committed screenshot and has no accessibility violations ($colorScheme, $width px wide)',
    async ({ colorScheme, width }) => {
      const app = await startApp({ PARLEY_DEVELOPMENT: 'true' })
      const { page, complaints } = await openConsole(app, browser, '/_design', { colorScheme, width })
      await page.getByRole('heading', { name: 'Empty and loading' }).waitFor()
      await page.evaluate(() => document.fonts.ready)
      expect(await listAxeFaults(page)).toEqual([])
      const picture = await page.screenshot({ fullPage: true, animations: 'disabled', caret: 'hide' })
      const path = `${folder}/design-${colorScheme}-${width}.png`
      if (process.env.UPDATE_PICTURES) await writeFile(path, picture)
      expect(await compare(picture, await readFile(path))).toBeLessThan(MAX_DIFFERENT_SHARE)
      expect(complaints).toEqual([])
    },
  )

  test('exists only if PARLEY_DEVELOPMENT is set', async () => {
    const { page } = await openConsole(await startApp(), browser, '/_design')
    await page.getByText('This page does not exist').waitFor()
    expect(await page.getByRole('heading', { name: 'Design' }).count()).toBe(0)
  })
})
