/** The console in a real browser: signed in, watched for everything it must not do. */
import { mkdir } from 'node:fs/promises'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { serviceActor } from '../../src/identity/audit.ts'
import { createSignInLink, renderSignInUrl } from '../../src/identity/sessions.ts'
import type { TestApp } from './app.ts'

export interface OpenedConsole {
  readonly page: Page
  readonly context: BrowserContext
  /** What the page did that it must not do; a test expects it to be empty. */
  readonly complaints: string[]
}

export interface ConsoleOptions {
  readonly colorScheme?: 'light' | 'dark'
  /** Of the window, in pixels. */
  readonly width?: number
  readonly height?: number
  /** Headers of every request, as a proxy would add them. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A browser window on the service; closed with the test. */
export async function openWindow(
  app: Pick<TestApp, 'url'>,
  browser: Browser,
  options: ConsoleOptions = {},
): Promise<OpenedConsole> {
  const opened = await createWindow(app, browser, options)
  onTestFinished(() => opened.context.close())
  return opened
}

/** A browser window on the service, which whoever asks for it closes. */
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
  // A condition is waited for, however busy the machine is.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const complaints: string[] = []
  watch(page, app.url, complaints)
  return { page, context, complaints }
}

/** A window of the local administrator's, signed in by a fresh link, at that address of the console. */
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

/** Comes in by a fresh link, to the list of agents. */
export async function signIn(app: TestApp, page: Page): Promise<void> {
  await page.goto(await makeSignInUrl(app))
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
}

export async function makeSignInUrl({ service }: TestApp): Promise<string> {
  return renderSignInUrl(service.url, await createSignInLink(service.deps, serviceActor))
}

/** Has the system of that window change its theme, and waits until the page has followed. */
export async function setTheme(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme })
  await page.waitForFunction(
    (scheme) => document.documentElement.dataset.mantineColorScheme === scheme,
    colorScheme,
  )
}

/** Errors, violations of the policy, and requests to anybody else. */
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

/** Keeps a picture of the page for people to look at; the folder is not in the repository. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  await mkdir('screenshots', { recursive: true })
  await page.screenshot({ path: `screenshots/${name}.png`, fullPage: true, animations: 'disabled' })
}
