/** Tests the API reference at `/docs` in a browser, under the page's content security policy. */
import { createReadStream } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { designFiles } from '../../src/design/design.ts'
import { docsPages } from '../../src/web/docs.ts'
import { launchBrowser } from '../support/browser.ts'
import { saveScreenshot } from '../support/screenshots.ts'

const document = {
  openapi: '3.1.0',
  info: { title: 'Parley', version: '1.2.3', description: 'Hosts **agents**.' },
  servers: [{ url: '/' }],
  security: [{ parentKey: [] }],
  tags: [{ name: 'Agents', description: 'Server-side agents.' }, { name: 'Chat' }],
  paths: {
    '/v1/agents': {
      get: {
        operationId: 'agents-list',
        tags: ['Agents'],
        summary: 'List agents',
        parameters: [{ name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100 } }],
        responses: {
          200: {
            description: 'The agents.',
            content: { 'application/json': { schema: { $ref: '#/components/schemas/AgentList' } } },
          },
        },
      },
    },
    '/v1/chat/completions': {
      post: {
        operationId: 'chat-complete',
        tags: ['Chat'],
        summary: 'Complete a chat',
        requestBody: {
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Message' } } },
        },
        responses: { 200: { description: 'The completion.' } },
      },
    },
  },
  components: {
    securitySchemes: { parentKey: { type: 'http', scheme: 'bearer', description: 'A parent key.' } },
    schemas: {
      AgentList: {
        type: 'object',
        properties: { object: { const: 'list' }, data: { type: 'array', items: {} } },
      },
      Message: {
        type: 'object',
        required: ['role'],
        properties: {
          role: { enum: ['system', 'user'] },
          content: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        },
      },
    },
  },
}

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const server = createServer(answer)
/** The requests that the page has sent to the API. */
const apiRequests: Pick<IncomingMessage, 'method' | 'url' | 'headers'>[] = []
let browser: Browser
let origin: string

beforeAll(async () => {
  browser = await launchBrowser()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(async () => {
  await browser?.close()
  server.close()
})

function answer(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url?.split('?')[0] ?? ''
  const page = docsPages.get(path) ?? designFiles.get(path)
  if (page !== undefined) {
    response.writeHead(200, page.headers)
    if ('text' in page.body) response.end(page.body.text)
    else createReadStream(join(page.body.folder, page.body.name)).pipe(response)
  } else if (path === '/openapi.json') {
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(document))
  } else {
    apiRequests.push({ method: request.method, url: request.url, headers: request.headers })
    response.setHeader('Content-Type', 'application/json').end('{"object":"list","data":[]}')
  }
}

/** A page with its console messages, errors, failed responses and cross-origin requests. */
interface OpenedPage {
  readonly page: Page
  readonly complaints: string[]
}

/** Opens the API reference and waits until it has rendered. */
async function openReference(
  options: { colorScheme?: 'light' | 'dark'; width?: number } = {},
): Promise<OpenedPage> {
  const { colorScheme = 'light', width = 1200 } = options
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(`console: ${message.text()}`))
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`))
  page.on('request', (request) => {
    const { origin: target, protocol } = new URL(request.url())
    if (target !== origin && protocol !== 'data:') complaints.push(`request: ${request.url()}`)
  })
  page.on('response', (response) => {
    if (!response.ok()) complaints.push(`${response.status()}: ${response.url()}`)
  })
  await page.goto(`${origin}/docs`)
  await page.getByText('Complete a chat').waitFor()
  return { page, complaints }
}

async function photograph(page: Page, name: string): Promise<void> {
  await saveScreenshot(page, `docs-${name}`)
}

/** Returns whether the page uses the dark theme, based on the color of its title. */
async function isDark(page: Page): Promise<boolean> {
  const color = await page
    .locator('h1, h2')
    .first()
    .evaluate((title) => getComputedStyle(title).color)
  const [red = 0] = color.match(/\d+/g) ?? []
  return Number(red) > 128
}

describe('the API reference', () => {
  test('lists every operation', async () => {
    const { page, complaints } = await openReference()
    expect(await page.locator('.opblock-summary-path').allInnerTexts()).toEqual([
      '/v1/agents',
      '/v1/chat/completions',
    ])
    await page.locator('.opblock-summary').last().click()
    await page.getByText('The completion.').waitFor()
    expect(complaints).toEqual([])
  })

  test('follows the system theme', async () => {
    const { page, complaints } = await openReference({ colorScheme: 'dark' })
    await expect.poll(() => isDark(page), { timeout: 10_000 }).toBe(true)
    await photograph(page, 'dark')
    await page.emulateMedia({ colorScheme: 'light' })
    await expect.poll(() => isDark(page), { timeout: 10_000 }).toBe(false)
    await photograph(page, 'light')
    expect(complaints).toEqual([])
  })

  test('fits on a phone screen', async () => {
    const { page, complaints } = await openReference({ width: 360 })
    await page.locator('.opblock-summary').first().click()
    await page.getByText('The agents.').waitFor()
    await photograph(page, 'phone')
    const scrollWidth = await page.evaluate(() => globalThis.document.documentElement.scrollWidth)
    expect(scrollWidth).toBeLessThanOrEqual(360)
    expect(complaints).toEqual([])
  })

  test('can send a request with the key that the user enters', async () => {
    const { page, complaints } = await openReference()
    await page.getByRole('button', { name: 'Authorize' }).click()
    await page.locator('.auth-container input').fill('svc_example')
    await page.locator('.auth-container button[type=submit]').click()
    await photograph(page, 'authorize')
    await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).last().click()
    await page.locator('.opblock-summary').first().click()
    await page.getByRole('button', { name: 'Try it out' }).click()
    await page.getByRole('button', { name: 'Execute' }).click()
    await page.locator('.live-responses-table').waitFor()
    expect(apiRequests).toMatchObject([
      { method: 'GET', url: '/v1/agents', headers: { authorization: 'Bearer svc_example' } },
    ])
    expect(complaints).toEqual([])
  })
})

describe("the API reference's security policy", () => {
  test('forbids inline and third-party code', () => {
    for (const { headers } of docsPages.values()) {
      expect(headers['Content-Security-Policy']).toContain("default-src 'none'")
      expect(headers['Content-Security-Policy']).not.toMatch(/unsafe|https?:|\*/)
      expect(headers).toMatchObject({ 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' })
    }
  })
})
