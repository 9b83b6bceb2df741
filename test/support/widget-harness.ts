/** Opens the widget in a browser, on pages of another origin that include the loader script. */
import { createServer } from 'node:http'
import type { Browser, BrowserContextOptions, FrameLocator, Locator, Page } from 'playwright-core'
import { openApp, type TestApp } from './app.ts'
import { launchBrowser } from './browser.ts'
import { listenOnOtherOrigin } from './other-origin.ts'

export interface HostDocument {
  readonly head?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The complete document; replaces `head` and `body`. */
  readonly html?: string
  /** The query string of the page's URL. */
  readonly query?: string
}

export interface WidgetPage {
  readonly page: Page
  readonly launcher: Locator
  readonly frame: FrameLocator
  /** Uncaught errors, and the console's warnings and errors. */
  readonly complaints: readonly string[]
  /** Returns the document's widget events, oldest first; the names omit the prefix `parley-chat-`. */
  readonly events: () => Promise<[name: string, detail: unknown][]>
  /** Waits for the first event with this name; returns its detail. */
  readonly event: (name: string) => Promise<unknown>
}

export interface WidgetHarness {
  readonly app: TestApp
  readonly agent: { readonly agent_id: string; readonly agent_key: string }
  readonly browser: Browser
  readonly origin: string
  /** Returns the loader's script tag with these attributes. */
  readonly script: (attributes?: string) => string
  readonly open: (document: HostDocument, browser?: BrowserContextOptions) => Promise<WidgetPage>
  readonly close: () => Promise<void>
}

/** Runs before the page's scripts; records all widget events. */
function noteEvents(): void {
  const noted: [string, unknown][] = []
  Object.assign(globalThis, { noted })
  const names = ['ready', 'opened', 'closed', 'unread', 'insert', 'tool-call', 'user-share', 'error']
  for (const name of names) {
    document.addEventListener(`parley-chat-${name}`, (event) => {
      const { detail } = event as CustomEvent
      noted.push([name, detail instanceof Error ? { ...detail, message: detail.message } : detail])
    })
  }
}

type Noting = { readonly noted: [string, unknown][] }

/** Starts a service with an agent, a page server and a browser; the caller must close the result. */
export async function openWidgetHarness(
  env: Readonly<Record<string, string>> = {},
  yaml = 'name: Helper\ninstructions: Help people.\nembed: { greeting: Hello! }\n',
  options: Parameters<typeof openApp>[1] = {},
): Promise<WidgetHarness> {
  const limits = { PARLEY_MAX_STREAMS_ADDRESS: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0' }
  const app = await openApp({ ...limits, ...env }, options)
  const agent = await app.createAgent(yaml)
  const documents: HostDocument[] = []
  const server = createServer(({ url = '' }, response) => {
    const { head = '', body = '', headers = {}, html } = documents[Number.parseInt(url.slice(1), 10)] ?? {}
    const viewport = '<meta name="viewport" content="width=device-width">'
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end(
      html ??
        `<!doctype html><html lang="en"><head>${viewport}<title>A page</title>${head}</head><body>${body}</body></html>`,
    )
  })
  const origin = await listenOnOtherOrigin(server)
  const browser = await launchBrowser()
  return {
    app,
    agent,
    browser,
    origin,
    script: (attributes = '') => `<script ${attributes} src="${app.url}/embed/parley.js"></script>`,
    async open(document, options = {}) {
      // Without transitions, positions can be measured at any time.
      const page = await browser.newPage({
        viewport: { width: 1000, height: 700 },
        reducedMotion: 'reduce',
        ...options,
      })
      await page.addInitScript(noteEvents)
      const address = `${origin}/${documents.push(document) - 1}${document.query ?? ''}`
      return watch(page, address)
    },
    async close() {
      await browser.close()
      server.close()
      await app.close()
    },
  }
}

async function watch(page: Page, address: string): Promise<WidgetPage> {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  await page.goto(address)
  const noted = () => page.evaluate(() => (globalThis as unknown as Noting).noted)
  return {
    page,
    launcher: page.locator('parley-chat .launcher'),
    frame: page.frameLocator('parley-chat iframe'),
    complaints,
    events: noted,
    async event(name) {
      const isNoted = (wanted: string) =>
        (globalThis as unknown as Noting).noted.some(([one]) => one === wanted)
      await page.waitForFunction(isNoted, name)
      return (await noted()).find(([one]) => one === name)?.[1]
    },
  }
}
