/** Opens the console in a real browser, signed in, and records forbidden behaviour. */
import { mkdir } from 'node:fs/promises'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { serviceActor } from '../../src/identity/audit.ts'
import { createSignInLink, renderSignInUrl } from '../../src/identity/sessions.ts'
import type { TestApp } from './app.ts'

export interface OpenedConsole {
  readonly page: Page
  readonly context: BrowserContext
  /** Console errors, policy violations and requests to other servers; tests expect none. */
  readonly complaints: string[]
}

export interface ConsoleOptions {
  readonly colorScheme?: 'light' | 'dark'
  /** The width of the window in pixels. */
  readonly width?: number
  readonly height?: number
  /** Headers of every request, as a proxy would add them. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Opens a browser window for the service, which closes with the test. */
export async function openWindow(
  app: Pick<TestApp, 'url'>,
  browser: Browser,
  options: ConsoleOptions = {},
): Promise<OpenedConsole> {
  const opened = await createWindow(app, browser, options)
  onTestFinished(() => opened.context.close())
  return opened
}

/** Opens a browser window on the console. The caller must close it. */
export async function createWindow(
  app: Pick<TestApp, 'url'>,
  browser: Browser,
  options: ConsoleOptions = {},
): Promise<OpenedConsole> {
  const { colorScheme = 'light', width = 1280, height = 900, headers } = options
  const context = await browser.newContext({
    colorScheme,
    viewport: { width, height },
    reducedMotion: 'reduce',
    ...(headers === undefined ? {} : { extraHTTPHeaders: { ...headers } }),
  })
  // A long timeout, so that a busy machine fails no test.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const complaints: string[] = []
  watch(page, app.url, complaints)
  return { page, context, complaints }
}

/** Opens the console at `path`, signed in as the local administrator. */
export async function openConsole(
  app: TestApp,
  browser: Browser,
  path = '/agents',
  options: ConsoleOptions = {},
): Promise<OpenedConsole> {
  const opened = await openWindow(app, browser, options)
  await signIn(app, opened.page)
  if (path !== '/agents') await opened.page.goto(`${app.url}/console${path}`)
  return opened
}

/** Signs in with a new link and waits for the list of agents. */
export async function signIn(app: TestApp, page: Page): Promise<void> {
  await page.goto(await makeSignInUrl(app))
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
}

export async function makeSignInUrl({ service }: TestApp): Promise<string> {
  return renderSignInUrl(service.url, await createSignInLink(service.deps, serviceActor))
}

/** Changes the system theme of the window and waits until the page follows. */
export async function setTheme(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme })
  await page.waitForFunction(
    (scheme) => document.documentElement.dataset.mantineColorScheme === scheme,
    colorScheme,
  )
}

/** Records errors, policy violations and requests to other servers. */
function watch(page: Page, origin: string, complaints: string[]): void {
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`))
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (url.origin !== origin && !['data:', 'blob:'].includes(url.protocol))
      complaints.push(`request: ${request.url()}`)
  })
}

/** Saves a screenshot of the page for review; the folder is not committed. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  await mkdir('screenshots', { recursive: true })
  await page.screenshot({ path: `screenshots/${name}.png`, fullPage: true, animations: 'disabled' })
}
