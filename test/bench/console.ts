/** Measures how long the console takes to load its first view and to respond to a click. */
import type { Browser } from 'playwright-core'
import { openApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { createWindow, signIn } from '../support/console-ui.ts'
import { type Row, toRow } from './report.ts'

/** The maximum time until a button reacts to a click, in milliseconds (docs/bench.md). */
const goalMs = 1_000
const PATIENCE_MS = 120_000

export async function measureConsole({ slowRounds }: { readonly slowRounds: number }): Promise<Row[]> {
  const rounds = 3 * slowRounds
  const app = await openApp()
  const browser = await launchBrowser()
  try {
    await app.createAgent()
    const visits: Visit[] = []
    for (let round = 0; round < rounds; round++) visits.push(await visit(app, browser))
    const nothing = visits.map(() => Number.NaN)
    const times = (name: keyof Visit) => visits.map((one) => one[name])
    return [
      toRow('console: first visit, address to the list, ms', nothing, times('shownMs'), undefined),
      toRow('console: first visit, address to a button that answers, ms', nothing, times('answeredMs'), {
        value: goalMs,
      }),
      toRow('console: page main thread, CPU ms', nothing, times('cpuMs'), undefined),
    ]
  } finally {
    await browser.close()
    await app.close()
  }
}

interface Visit {
  readonly shownMs: number
  readonly answeredMs: number
  readonly cpuMs: number
}

/** Measures one visit in a new browser context, with a session and an empty cache. */
async function visit(app: TestApp, browser: Browser): Promise<Visit> {
  const { page, context } = await createWindow(app, browser)
  try {
    context.setDefaultTimeout(PATIENCE_MS)
    await signIn(app, page)
    const session = await context.newCDPSession(page)
    await session.send('Network.clearBrowserCache')
    await page.goto('about:blank')
    // Measures CPU time, because other work on the machine would increase the wall time.
    await session.send('Performance.enable', { timeDomain: 'threadTicks' })
    const startedAt = performance.now()
    await page.goto(`${app.url}/console/agents`, { waitUntil: 'commit' })
    await page.getByRole('link', { name: 'Greeter' }).waitFor()
    const shownMs = performance.now() - startedAt
    await page.getByRole('button', { name: /^Theme/ }).click()
    await page.getByRole('menuitem', { name: 'Dark' }).waitFor()
    const answeredMs = performance.now() - startedAt
    const { metrics } = await session.send('Performance.getMetrics')
    const busy = metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN
    return { shownMs, answeredMs, cpuMs: busy * 1e3 }
  } finally {
    await context.close()
  }
}
