/** Tests that every console view is accessible, fits on the screen and does not shift while it loads. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { type Installation, openInstallation } from '../support/console-installation.ts'
import { listViews, openView } from '../support/console-tour.ts'
import { openConsole, setTheme } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 120_000 })

let browser: Browser
let installation: Installation
beforeAll(async () => {
  browser = await launchBrowser()
  installation = await openInstallation()
})
afterAll(async () => {
  await browser?.close()
  await installation?.close()
})

interface Moved {
  readonly score: number
  /** The moved elements with their previous and new positions and sizes, as text. */
  readonly parts: string
}

/** Runs in the page; records every layout shift in `window.moved`. */
function noteMoves(): void {
  const moved: Moved[] = []
  Object.assign(window, { moved })
  const render = (box: DOMRect) => [box.x, box.y, box.width, box.height].map(Math.round).join(' ')
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as LayoutShift[]) {
      const parts = entry.sources.map(({ node, previousRect, currentRect }) => {
        const name = node instanceof Element ? `${node.tagName}.${node.className}` : node?.textContent
        return `${name} (${render(previousRect)} to ${render(currentRect)})`
      })
      moved.push({ score: entry.value, parts: parts.join(', ') })
    }
  }).observe({ type: 'layout-shift', buffered: true })
}

interface LayoutShift extends PerformanceEntry {
  readonly value: number
  readonly sources: readonly {
    readonly node: Node | null
    readonly previousRect: DOMRect
    readonly currentRect: DOMRect
  }[]
}

/** Lists the layout shifts if their total score reaches 0.005; Web Vitals considers up to 0.1 good. */
async function listMoves(page: Page): Promise<string[]> {
  const moves = await page.evaluate(() => (window as unknown as { moved: Moved[] }).moved)
  const total = moves.reduce((sum, { score }) => sum + score, 0)
  return total < 0.005 ? [] : moves.map(({ score, parts }) => `moved ${score.toFixed(4)}: ${parts}`)
}

/** Lists accessibility violations and horizontal overflow on the current page. */
async function listFaults(page: Page): Promise<string[]> {
  const faults = await listAxeFaults(page)
  const width = await page.evaluate(() => document.documentElement.scrollWidth)
  return width > (page.viewportSize()?.width ?? 0) ? [...faults, `${width} pixels wide`] : faults
}

test.each([
  ['window', ['light', 'dark'], {}],
  ['phone', ['phone'], { width: 390, height: 844 }],
] as const)(
  'every console view is accessible and does not shift while it loads (%s)',
  async (_kind, looks, options) => {
    const { app } = installation
    const { page, complaints } = await openConsole(app, browser, '/agents', options)
    await page.addInitScript(noteMoves)
    const faults: string[] = []
    for (const view of listViews(installation)) {
      await openView(page, app.url, view)
      faults.push(...(await listMoves(page)).map((move) => `${view.name}: ${move}`))
      for (const look of looks) {
        await setTheme(page, look === 'dark' ? 'dark' : 'light')
        await saveScreenshot(page, `view-${view.name}-${look}`)
        faults.push(...(await listFaults(page)).map((fault) => `${view.name}, ${look}: ${fault}`))
      }
      await setTheme(page, 'light')
    }
    expect(faults).toEqual([])
    expect(complaints).toEqual([])
  },
)

test('a view shows an error and a retry button while the server is unreachable', async () => {
  const app = await startApp()
  const { agent_id } = await app.createAgent()
  const { page, context } = await openConsole(app, browser)
  await page.route('**/trpc/agents.versions*', (route) => route.abort())
  await page.goto(`${app.url}/console/agents/${agent_id}/history`)
  await page.getByRole('alert').getByText('The server cannot be reached.').waitFor()
  await page.unroute('**/trpc/agents.versions*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('Version 1 (first)').waitFor()
  await context.setOffline(true)
  await page.getByText('You are offline.').waitFor()
  expect(await listAxeFaults(page)).toEqual([])
})
