/** Opens the console in a browser, signs in, and records errors and requests to other servers. */
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { serviceActor } from '../../src/identity/audit.ts'
import { createSignInLink, renderSignInUrl } from '../../src/identity/sessions.ts'
import type { TestApp } from './app.ts'
import { consoleHeaders } from './console.ts'

export interface OpenedConsole {
  readonly page: Page
  readonly context: BrowserContext
  /**
   * The console's errors and warnings (such as CSP violations), uncaught errors, and requests to other
   * servers.
   */
  readonly complaints: string[]
}

export interface ConsoleOptions {
  readonly colorScheme?: 'light' | 'dark'
  /** The window's width in pixels. */
  readonly width?: number
  readonly height?: number
  /** Headers to add to every request, as a proxy would. */
  readonly headers?: Readonly<Record<string, string>>
  /** The browser's language, such as `de-DE`. */
  readonly locale?: string
}

/** Opens a browser window and closes it when the test ends. */
export async function openWindow(
  app: Pick<TestApp, 'url'>,
  browser: Browser,
  options: ConsoleOptions = {},
): Promise<OpenedConsole> {
  const opened = await createWindow(app, browser, options)
  onTestFinished(() => opened.context.close())
  return opened
}

/** Opens a browser window; the caller must close it. */
export async function createWindow(
  app: Pick<TestApp, 'url'>,
  browser: Browser,
  options: ConsoleOptions = {},
): Promise<OpenedConsole> {
  const { colorScheme = 'light', width = 1280, height = 900, headers, locale } = options
  const context = await browser.newContext({
    colorScheme,
    viewport: { width, height },
    reducedMotion: 'reduce',
    ...(locale === undefined ? {} : { locale }),
    ...(headers === undefined ? {} : { extraHTTPHeaders: { ...headers } }),
  })
  // Browsers are slow on a busy machine.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const complaints: string[] = []
  watch(page, app.url, complaints)
  return { page, context, complaints }
}

/** Opens the console at `path` as the local administrator. */
export async function openConsole(
  app: TestApp,
  browser: Browser,
  path = '/agents',
  options: ConsoleOptions = {},
): Promise<OpenedConsole> {
  const opened = await openWindow(app, browser, options)
  const { text: link } = await createSignInLink(app.service.deps, serviceActor)
  // Skips the sign-in page to save time; `signIn` uses that page.
  const answer = await opened.context.request.post(`${app.url}/v1/manager/sign-in`, {
    headers: consoleHeaders,
    data: { link },
  })
  expect(answer.status()).toBe(200)
  await opened.page.goto(`${app.url}/console${path}`)
  if (path === '/agents') await waitForAgents(opened.page)
  return opened
}

/** Signs in with a new link and waits for the agent list. */
export async function signIn(app: TestApp, page: Page): Promise<void> {
  await page.goto(await makeSignInUrl(app))
  await waitForAgents(page)
}

async function waitForAgents(page: Page): Promise<void> {
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
}

export async function makeSignInUrl({ service }: TestApp): Promise<string> {
  return renderSignInUrl(service.url, await createSignInLink(service.deps, serviceActor))
}

/** Changes the system theme and waits until the page has applied it. */
export async function setTheme(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme })
  await page.waitForFunction(
    (scheme) => document.documentElement.dataset.mantineColorScheme === scheme,
    colorScheme,
  )
}

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
