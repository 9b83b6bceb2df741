/**
 * Takes the screenshots in the documentation, and all views of the console and the widget in both themes and
 * two widths (`npm run screenshots`). With the argument `docs` or `views`, takes only those (docs/design.md).
 */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import sharp from 'sharp'
import { launchBrowser } from '../../test/support/browser.ts'
import { type Installation, openInstallation } from '../../test/support/console-installation.ts'
import { createWindow, signIn } from '../../test/support/console-ui.ts'
import { pictures, type Scenes } from './pictures.ts'
import { openShowcase } from './showcase.ts'
import { listConsoleViews, type SceneView, showcaseViews } from './views.ts'

const docsFolder = fileURLToPath(new URL('../../docs/pictures', import.meta.url))
/** Git ignores this folder. */
const viewsFolder = fileURLToPath(new URL('../../screenshots', import.meta.url))
/** Limits the file size, so that the README loads quickly on slow connections. */
const MAX_BYTES = 130 * 1024

const modes = [
  { name: 'light', colorScheme: 'light', width: 1440, height: 900 },
  { name: 'dark', colorScheme: 'dark', width: 1440, height: 900 },
  { name: 'phone-light', colorScheme: 'light', width: 390, height: 844 },
  { name: 'phone-dark', colorScheme: 'dark', width: 390, height: 844 },
] as const

interface Look {
  readonly colorScheme: 'light' | 'dark'
  readonly width: number
  readonly height: number
}

/** Opens a window that is signed in; ports share cookies, so each installation needs its own window. */
async function openWindow(browser: Browser, { app }: Pick<Installation, 'app'>, look: Look): Promise<Page> {
  const { page } = await createWindow(app, browser, look)
  await signIn(app, page)
  return page
}

async function takePictures(browser: Browser, scenes: Scenes): Promise<void> {
  for (const { name, scene, open, ...look } of pictures) {
    const page = await openWindow(browser, scenes[scene], look)
    await open(page, scenes)
    const picture = await page.screenshot({ animations: 'disabled', caret: 'hide' })
    const bytes = await sharp(picture).png({ palette: true, quality: 95, effort: 10 }).toBuffer()
    if (bytes.length > MAX_BYTES)
      throw new Error(`${name}.png would have ${bytes.length} bytes, more than ${MAX_BYTES}.`)
    await writeFile(join(docsFolder, `${name}.png`), bytes)
    process.stdout.write(`docs/pictures/${name}.png: ${Math.round(bytes.length / 1024)} KB\n`)
    await page.context().close()
  }
}

async function takeViews(browser: Browser, scenes: Scenes): Promise<void> {
  await rm(viewsFolder, { recursive: true, force: true })
  for (const mode of modes) {
    const folder = join(viewsFolder, mode.name)
    await mkdir(folder, { recursive: true })
    const installed = await openWindow(browser, scenes.installation, mode)
    await saveViews(installed, scenes, folder, listConsoleViews(scenes))
    const shown = await openWindow(browser, scenes.showcase, mode)
    await saveViews(shown, scenes, folder, showcaseViews)
    process.stdout.write(`screenshots/${mode.name}\n`)
  }
}

async function saveViews(
  page: Page,
  scenes: Scenes,
  folder: string,
  views: readonly SceneView[],
): Promise<void> {
  for (const { name, open, isWindow } of views) {
    await open(page, scenes)
    const path = join(folder, `${name}.png`)
    await page.screenshot({ path, fullPage: isWindow !== true, animations: 'disabled', caret: 'hide' })
  }
  await page.context().close()
}

const [only] = process.argv.slice(2)
const browser = await launchBrowser()
try {
  const installation = await openInstallation()
  try {
    const showcase = await openShowcase()
    try {
      const suggesting = 'name: Concierge\ninstructions: Help guests.\nembed:\n  followUps: true\n'
      const { agent_key: followUpsKey } = await installation.app.createAgent(suggesting)
      const scenes: Scenes = { installation, showcase, followUpsKey }
      if (only !== 'views') await takePictures(browser, scenes)
      if (only !== 'docs') await takeViews(browser, scenes)
    } finally {
      await showcase.close()
    }
  } finally {
    await installation.close()
  }
} finally {
  await browser.close()
}
