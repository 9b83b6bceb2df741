/** Opens the widget frame in a browser, inside a page that implements the loader's protocol. */
import { createServer } from 'node:http'
import type { Browser, BrowserContextOptions, Frame, Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { FrameMessage } from '../../widget/messages.ts'
import type { FrameOptions } from '../../widget/options.ts'
import { openApp, type TestApp } from './app.ts'
import { launchBrowser } from './browser.ts'
import { listenOnOtherOrigin } from './other-origin.ts'
import { hostPage } from './widget-host-page.ts'

/** A tool that the page offers over MCP. */
export interface ListedTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema: object
  readonly annotations?: object
}

export interface OpenOptions {
  /** Null sends no key; by default, the agent's key. */
  readonly key?: string | null
  readonly options?: Partial<FrameOptions>
  readonly context?: object
  readonly tools?: readonly ListedTool[]
  readonly browser?: BrowserContextOptions
  /** Uses a page on the frame's site, because private windows block storage in cross-site frames. */
  readonly isSameSite?: boolean
  /** Opens the page in this page's browser context, so that both share storage. */
  readonly beside?: OpenFrame
}

/** A page that contains the frame. */
export interface OpenFrame {
  readonly page: Page
  readonly frame: Frame
  /** Returns the messages that the page has received, oldest first. */
  readonly said: () => Promise<FrameMessage[]>
  readonly post: (message: object) => Promise<void>
  readonly say: (text: string) => Promise<void>
  /** Waits until the current reply is complete. */
  readonly settle: () => Promise<void>
  /** The URLs of all requests. */
  readonly requests: readonly string[]
  readonly complaints: readonly string[]
  /** Returns the texts of all replies, oldest first. */
  readonly replies: () => Promise<string[]>
}

export interface FrameHarness {
  readonly app: TestApp
  readonly agent: { readonly agent_id: string; readonly agent_key: string }
  readonly browser: Browser
  readonly hostUrl: string
  open(options?: OpenOptions): Promise<OpenFrame>
  close(): Promise<void>
}

export const helper = `name: Helper
instructions: Help people.
embed:
  title: Helping hand
  greeting: "Hello! I am **here**."
  starters: ["What can you do?", "Say something nice"]
`

/** An agent whose conversations the server stores. */
export const keeper = `${helper}conversations:
  keep: 30d
  onDisconnect: continue
`

/** Starts a service with an agent, a page server and a browser; the caller must close the result. */
export async function openFrameHarness(
  env: Readonly<Record<string, string>> = {},
  yaml = helper,
): Promise<FrameHarness> {
  const unlimited = { PARLEY_MAX_STREAMS_ADDRESS: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0' }
  const app = await openApp({
    ...unlimited,
    PARLEY_MAX_FOLLOWERS_ADDRESS: '0',
    PARLEY_RATE_LIMIT_AGENT: '0',
    ...env,
  })
  const agent = await app.createAgent(yaml)
  const pages = await openFramePages(app.url)
  const { browser, hostUrl } = pages
  return {
    app,
    agent,
    browser,
    hostUrl,
    open: (options = {}) => openFrame({ key: agent.agent_key, browser, hostUrl }, options),
    async close() {
      await pages.close()
      await app.close()
    },
  }
}

/**
 * Starts a browser, and a server of pages with the frame of the service at `url`. The caller must close both.
 */
export async function openFramePages(url: string) {
  const server = createServer((_request, response) =>
    response.setHeader('Content-Type', 'text/html').end(hostPage(url)),
  )
  const browser = await launchBrowser()
  const hostUrl = `${await listenOnOtherOrigin(server)}/`
  return {
    browser,
    hostUrl,
    async close() {
      await browser.close()
      server.close()
    },
  }
}

interface Parts {
  readonly key: string
  readonly browser: Browser
  readonly hostUrl: string
}

export async function openFrame(parts: Parts, options: OpenOptions): Promise<OpenFrame> {
  const context =
    options.beside?.page.context() ??
    (await parts.browser.newContext({
      viewport: { width: 360, height: 420 },
      locale: 'en-US',
      ...options.browser,
    }))
  const page = await context.newPage()
  const requests: string[] = []
  const complaints: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  await page.goto(options.isSameSite ? parts.hostUrl.replace('localhost', '127.0.0.1') : parts.hostUrl)
  const key = options.key === undefined ? parts.key : options.key
  const configured = { ...plainOptions, ...(key === null ? {} : { apiKey: key }), ...options.options }
  const set = { options: configured, context: options.context, tools: options.tools ?? [] }
  await page.evaluate((given) => (globalThis as unknown as HostPage).connect(given), set)
  const frame = page.frames()[1] as Frame
  return {
    page,
    frame,
    requests,
    complaints,
    said: () => page.evaluate(() => (globalThis as unknown as HostPage).said),
    post: (message) =>
      page.evaluate((sent) => (globalThis as unknown as HostPage).port.postMessage(sent), message),
    async say(text) {
      await frame.locator('textarea').fill(text)
      await frame.locator('textarea').press('Enter')
    },
    async settle() {
      await frame.waitForFunction(() => document.querySelector('[aria-busy=true]') === null)
    },
    replies: () =>
      frame.locator('article.reply').evaluateAll((all) => all.map((one) => (one as HTMLElement).innerText)),
  }
}

/** The loader's default options. */
export const plainOptions: FrameOptions = {
  theme: 'light',
  primaryColor: '#4f46e5',
  debug: false,
  history: true,
  isInline: false,
}

/** The globals of the page in widget-host-page.ts. */
export interface HostPage {
  connect(given: object): Promise<void>
  readonly said: FrameMessage[]
  readonly port: MessagePort
  readonly session: string
  readonly called: { name: string; args: unknown }[]
  /** Returns a tool call's result; undefined sends no result. */
  answerTool: (name: string, args: unknown, id: string) => unknown
}

/** Asserts that the page has received only messages of these types. */
export async function expectOnly(opened: OpenFrame, ...types: FrameMessage['type'][]): Promise<void> {
  const said = await opened.said()
  expect(said.filter(({ type }) => !types.includes(type))).toEqual([])
}

/** Finds visible text in the frame, without screen reader announcements. */
export function visibleText(frame: Frame, text: string | RegExp): Locator {
  return frame.locator('header, main, footer, dialog').getByText(text)
}
