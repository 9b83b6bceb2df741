/** Every view of agents in both themes and on a phone: clean to axe, within the window, still while it loads; kept as pictures. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp } from './support/app.ts'
import { listAxeFaults } from './support/axe.ts'
import { launchBrowser } from './support/browser.ts'
import { keepPicture, openConsole } from './support/console-ui.ts'

// A browser needs its processor, which others may have on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const yaml = `name: Support
instructions: |
  You help the customers of our shop.
behavior:
  tone: friendly
tools:
  - lookup
embed:
  greeting: Hello!
`

const views = (id: string): [name: string, path: string, ready: (page: Page) => Promise<unknown>][] => [
  ['list', '/agents', (page) => page.getByRole('link', { name: 'Support' }).waitFor()],
  ['templates', '/agents/new', (page) => page.getByRole('link', { name: /Blank/ }).waitFor()],
  [
    'create',
    '/agents/new?template=support',
    (page) => page.getByLabel('Name', { exact: false }).first().waitFor(),
  ],
  ['form', `/agents/${id}?view=form`, (page) => page.getByLabel('Instructions').waitFor()],
  ['text', `/agents/${id}?view=yaml`, (page) => page.locator('.cm-content').waitFor()],
  ['embed', `/agents/${id}/embed`, (page) => page.frameLocator('iframe').getByText('Hello!').waitFor()],
  ['models', `/agents/${id}/models`, (page) => page.getByText('In effect now').waitFor()],
  ['history', `/agents/${id}/history`, (page) => page.getByText('Version 1, the first').waitFor()],
]

test.each([
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['phone', { colorScheme: 'light', width: 390, height: 844 }],
] as const)('every view is in order: %s', async (kind, options) => {
  const app = await startApp()
  const { agent_id } = await app.createAgent(yaml)
  const { page, complaints } = await openConsole(app, browser, '/agents', options)
  const faults: string[] = []
  for (const [name, path, ready] of views(agent_id)) {
    await page.goto(`${app.url}/console${path}`)
    await ready(page)
    await keepPicture(page, `view-${name}-${kind}`)
    faults.push(...(await listAxeFaults(page)).map((fault) => `${name}: ${fault}`))
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    if (width > (page.viewportSize()?.width ?? 0)) faults.push(`${name}: ${width} pixels wide`)
  }
  expect(faults).toEqual([])
  expect(complaints).toEqual([])
})

test('nothing moves while the list loads', async () => {
  const app = await startApp()
  await app.createAgent(yaml)
  const { page } = await openConsole(app, browser)
  await page.addInitScript(() => {
    const moved: string[] = []
    Object.assign(window, { moved })
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) moved.push(String((entry as { value?: number }).value))
    }).observe({ type: 'layout-shift', buffered: true })
  })
  await page.goto(`${app.url}/console/agents`)
  await page.getByRole('link', { name: 'Support' }).waitFor()
  const total = await page.evaluate(() =>
    (window as unknown as { moved: string[] }).moved.reduce((sum, value) => sum + Number(value), 0),
  )
  expect(total).toBeLessThan(0.02)
})

test('a server that cannot be reached is told, and asked again', async () => {
  const app = await startApp()
  const { agent_id } = await app.createAgent(yaml)
  const { page, context } = await openConsole(app, browser)
  await page.route('**/trpc/agents.versions*', (route) => route.abort())
  await page.goto(`${app.url}/console/agents/${agent_id}/history`)
  await page.getByRole('alert').getByText('The server cannot be reached.').waitFor()
  await page.unroute('**/trpc/agents.versions*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('Version 1, the first').waitFor()
  await context.setOffline(true)
  await page.getByText('You are offline.').waitFor()
  expect(await listAxeFaults(page)).toEqual([])
})
