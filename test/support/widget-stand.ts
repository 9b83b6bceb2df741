/** The widget on pages of another origin, in a real browser: what a developer who embeds it has. */
import { createServer } from 'node:http'
import type { Browser, BrowserContextOptions, FrameLocator, Locator, Page } from 'playwright-core'
import { openApp, type TestApp } from './app.ts'
import { launchBrowser } from './browser.ts'
import { listenElsewhere } from './elsewhere.ts'

/** A page as its server answers. */
export interface HostDocument {
  readonly head?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The whole document instead. */
  readonly html?: string
  /** What follows its path in the address. */
  readonly query?: string
}

export interface WidgetPage {
  readonly page: Page
  readonly launcher: Locator
  readonly frame: FrameLocator
  /** What the console of the page said beyond `info`. */
  readonly complaints: readonly string[]
  /** Every event of the document, oldest first: its name without `parley-chat-`, and its detail as JSON has it. */
  readonly events: () => Promise<[name: string, detail: unknown][]>
  /** Waits for the first event of that name; answers its detail. */
  readonly event: (name: string) => Promise<unknown>
}

export interface WidgetStand {
  readonly app: TestApp
  readonly agent: { readonly agent_id: string; readonly agent_key: string }
  readonly browser: Browser
  /** The origin of the pages. */
  readonly origin: string
  /** The tag of the script; attributes beyond `src` stand before it. */
  readonly script: (attributes?: string) => string
  /** Opens a page; `document` is its HTML. */
  readonly open: (document: HostDocument, browser?: BrowserContextOptions) => Promise<WidgetPage>
  readonly close: () => Promise<void>
}

/** The events of the page, noted before anything of it runs. */
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

/** The service with an agent, a server of pages at localhost, a browser; whoever asks for it closes it. */
export async function openWidgetStand(
  env: Readonly<Record<string, string>> = {},
  yaml = 'name: Helper\ninstructions: Help people.\nembed: { greeting: Hello! }\n',
): Promise<WidgetStand> {
  const app = await openApp({ PARLEY_MAX_STREAMS_ADDRESS: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0', ...env })
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
  const origin = await listenElsewhere(server)
  const browser = await launchBrowser()
  return {
    app,
    agent,
    browser,
    origin,
    script: (attributes = '') => `<script ${attributes} src="${app.url}/embed/parley.js"></script>`,
    async open(document, options = {}) {
      const page = await browser.newPage({ viewport: { width: 1000, height: 700 }, ...options })
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
