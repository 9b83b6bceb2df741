/** Takes the README's screenshots from a small running installation (`npm run screenshots`). */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { FrameLocator, Page } from 'playwright-core'
import { launchBrowser } from '../test/support/browser.ts'
import { type Installation, openInstallation } from '../test/support/console-installation.ts'
import { askInPlayground } from '../test/support/console-parts.ts'
import { listViews, openView } from '../test/support/console-tour.ts'
import { createWindow, signIn } from '../test/support/console-ui.ts'

const folder = fileURLToPath(new URL('../docs/pictures', import.meta.url))
/** Limits the file size, so that the README loads quickly on slow connections. */
const MAX_BYTES = 200 * 1024

interface Picture {
  readonly name: string
  readonly colorScheme: 'light' | 'dark'
  readonly width: number
  readonly height: number
  readonly open: (page: Page, installation: Installation) => Promise<void>
}

const pictures: readonly Picture[] = [
  { name: 'console-editor', colorScheme: 'light', width: 1280, height: 800, open: tryIt },
  { name: 'console-embed', colorScheme: 'light', width: 1280, height: 1150, open: askPreview },
  { name: 'console-usage', colorScheme: 'dark', width: 1280, height: 960, open: showUsage },
  { name: 'console-budgets', colorScheme: 'light', width: 1280, height: 560, open: showBudgets },
  { name: 'widget', colorScheme: 'light', width: 900, height: 560, open: askWidget },
]

async function openNamed(page: Page, installation: Installation, name: string): Promise<void> {
  const view = listViews(installation).find((one) => one.name === name)
  if (view === undefined) throw new Error(`There is no view ${name}.`)
  await openView(page, installation.app.url, view)
}

async function tryIt(page: Page, installation: Installation): Promise<void> {
  await openNamed(page, installation, 'edit-try')
  await askInPlayground(page, 'Which of my orders are on the way?')
  await page.getByRole('group', { name: 'Answer details' }).waitFor()
}

async function askPreview(page: Page, installation: Installation): Promise<void> {
  await openNamed(page, installation, 'embed')
  await page.locator('.preview-stage').evaluate((stage) => stage.scrollIntoView({ block: 'end' }))
  const preview = page.locator('.preview-stage iframe').contentFrame()
  await preview.getByRole('button', { name: 'Open chat' }).evaluate((button: HTMLElement) => button.click())
  await say(preview.frameLocator('parley-chat iframe'), 'How do I return something?')
}

function showUsage(page: Page, installation: Installation): Promise<void> {
  return openNamed(page, installation, 'usage')
}

function showBudgets(page: Page, installation: Installation): Promise<void> {
  return openNamed(page, installation, 'budgets')
}

/** Chats on the demo page. */
async function askWidget(page: Page, { app, support }: Installation): Promise<void> {
  await page.goto(`${app.url}/demo?key=${support.agent_key}`)
  await page.locator('parley-chat .launcher').evaluate((launcher: HTMLElement) => {
    if (launcher.ariaExpanded !== 'true') launcher.click()
  })
  await say(page.frameLocator('parley-chat iframe'), 'How do I return something?')
}

async function say(frame: FrameLocator, text: string): Promise<void> {
  const field = frame.getByRole('textbox')
  await field.fill(text)
  await field.press('Enter')
  await frame.getByRole('main').getByText(`You said: ${text}`).waitFor()
}

async function takePicture(page: Page, installation: Installation, picture: Picture): Promise<void> {
  const { name, open, colorScheme, width, height } = picture
  await page.setViewportSize({ width, height })
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await open(page, installation)
  const bytes = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  if (bytes.length > MAX_BYTES)
    throw new Error(`${name}.png would have ${bytes.length} bytes, more than ${MAX_BYTES}.`)
  await writeFile(`${folder}/${name}.png`, bytes)
  process.stdout.write(`docs/pictures/${name}.png: ${Math.round(bytes.length / 1024)} KB\n`)
}

const browser = await launchBrowser()
try {
  const installation = await openInstallation()
  try {
    const { page } = await createWindow(installation.app, browser)
    await signIn(installation.app, page)
    for (const picture of pictures) await takePicture(page, installation, picture)
  } finally {
    await installation.close()
  }
} finally {
  await browser.close()
}
