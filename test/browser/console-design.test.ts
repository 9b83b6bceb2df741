/**
 * Compares each section of the design system page with committed screenshots. Set UPDATE_PICTURES=1 to
 * replace them.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import pixelmatch from 'pixelmatch'
import type { Browser, Page } from 'playwright-core'
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
/** Tolerates the edges of letters, which versions of Chromium smooth differently. */
const MAX_DIFFERENT_PIXELS = 200
/** Detects the difference between a white and a tinted background. */
const COLOR_THRESHOLD = 0.03

interface Box {
  readonly name: string
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

async function readPixels(picture: Buffer, { left, top, width, height }: Box): Promise<Buffer> {
  return sharp(picture).extract({ left, top, width, height }).ensureAlpha().raw().toBuffer()
}

/** Lists the parts of the picture that differ, or `size` if the pictures have different sizes. */
async function listDifferences(actual: Buffer, expected: Buffer, boxes: readonly Box[]): Promise<string[]> {
  const [one, other] = await Promise.all([sharp(actual).metadata(), sharp(expected).metadata()])
  if (one.width !== other.width || one.height !== other.height) return ['size']
  const differences = await Promise.all(
    boxes.map(async (box) => {
      const [shown, wanted] = await Promise.all([readPixels(actual, box), readPixels(expected, box)])
      const { name, width, height } = box
      const options = { threshold: COLOR_THRESHOLD }
      const count = pixelmatch(shown, wanted, undefined, width, height, options)
      return count > MAX_DIFFERENT_PIXELS ? [name] : []
    }),
  )
  return differences.flat()
}

/** Returns the page's sections, and the header above them. */
function listBoxes(page: Page): Promise<Box[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('main section')].map((section) => {
      const { left, top, width, height } = section.getBoundingClientRect()
      const name = section.querySelector('h2')?.textContent ?? ''
      const [x, y] = [Math.floor(left), Math.floor(top + scrollY)]
      return { name, left: x, top: y, width: Math.floor(width), height: Math.floor(height) }
    }),
  )
}

interface Look {
  readonly colorScheme: 'light' | 'dark'
  readonly width: number
}

async function openDesign(look: Look) {
  const app = await startApp({ PARLEY_DEVELOPMENT: 'true' })
  const opened = await openConsole(app, browser, '/_design', look)
  await opened.page.getByRole('heading', { name: 'Empty and loading' }).waitFor()
  await opened.page.evaluate(() => document.fonts.ready)
  return opened
}

async function takePicture(page: Page): Promise<Buffer> {
  return page.screenshot({ fullPage: true, animations: 'disabled', caret: 'hide' })
}

/** Compares the open dialog without the page behind it. */
async function compareDialog(page: Page, name: string): Promise<string[]> {
  const picture = await page.getByRole('dialog').screenshot({ animations: 'disabled', caret: 'hide' })
  const { width, height } = await sharp(picture).metadata()
  return compare(name, picture, [{ name: 'dialog', left: 0, top: 0, width, height }])
}

/** Compares a picture with the committed one, which it replaces with UPDATE_PICTURES. */
async function compare(name: string, picture: Buffer, boxes: readonly Box[]): Promise<string[]> {
  const path = `${folder}/${name}.png`
  if (process.env.UPDATE_PICTURES) {
    await writeFile(path, await sharp(picture).png({ compressionLevel: 9, effort: 10 }).toBuffer())
  }
  return listDifferences(picture, await readFile(path), boxes)
}

const cases = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [1280, 390].map((width) => ({ colorScheme, width })),
)

/** A mistake in the design, and a section in which it must be found. */
const mistakes: readonly (readonly [mistake: string, style: string, section: string])[] = [
  ['a red accent color', ':root { --accent: #c81e1e !important }', 'Colors'],
  ['buttons without a background', '.mantine-Button-root { background: none !important }', 'Buttons'],
  ['a notice without a background', '.mantine-Alert-root { background: none !important }', 'Notices'],
  ['an input without a border', 'main input { border-color: transparent !important }', 'Fields'],
  ['square corners', 'main * { border-radius: 0 !important }', 'Shape and shadow'],
  [
    'status without a color',
    '.status, .status *, .status::before { color: #000 !important; background: #000 !important }',
    'Status',
  ],
  ['a table without lines', 'td, th, tr, table { border-color: transparent !important }', 'Table'],
]

describe('the design system page', () => {
  test.each(cases)(
    'matches the committed screenshot and has no accessibility violations ($colorScheme, $width px wide)',
    async ({ colorScheme, width }) => {
      const { page, complaints } = await openDesign({ colorScheme, width })
      expect(await listAxeFaults(page)).toEqual([])
      const boxes = await listBoxes(page)
      expect(boxes.length).toBeGreaterThan(15)
      expect(await compare(`design-${colorScheme}-${width}`, await takePicture(page), boxes)).toEqual([])
      expect(complaints).toEqual([])
    },
  )

  test.each(['light', 'dark'] as const)(
    'matches the screenshots of a dialog and the palette (%s)',
    async (colorScheme) => {
      const { page } = await openDesign({ colorScheme, width: 1280 })
      await page.getByRole('button', { name: 'Open dialog' }).click()
      await page.getByRole('dialog', { name: 'Revoke key' }).waitFor()
      expect(await listAxeFaults(page)).toEqual([])
      expect(await compareDialog(page, `design-dialog-${colorScheme}`)).toEqual([])
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Open palette' }).click()
      await page.getByLabel('Search for a command').fill('proactive')
      await page.getByText('Proactive rules').waitFor()
      expect(await compareDialog(page, `design-palette-${colorScheme}`)).toEqual([])
    },
  )

  test.each(mistakes)('the comparison finds %s', async (_mistake, style, section) => {
    const { page } = await openDesign({ colorScheme: 'light', width: 1280 })
    await page.evaluate((text) => {
      const sheet = new CSSStyleSheet()
      sheet.replaceSync(text)
      document.adoptedStyleSheets.push(sheet)
    }, style)
    const expected = await readFile(`${folder}/design-light-1280.png`)
    const differences = await listDifferences(await takePicture(page), expected, await listBoxes(page))
    expect(differences).toContain(section)
  })

  test('exists only if PARLEY_DEVELOPMENT is set', async () => {
    const { page } = await openConsole(await startApp(), browser, '/_design')
    await page.getByText('This page does not exist').waitFor()
    expect(await page.getByRole('heading', { name: 'Design' }).count()).toBe(0)
  })
})
