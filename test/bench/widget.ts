/**
 * Measures the widget's transfers, the time to its first message and its longest task during a long reply.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Frame, Page } from 'playwright-core'
import { parseConfig } from '../../src/config/parse.ts'
import { createService, type Service } from '../../src/server/service.ts'
import { launchBrowser } from '../support/browser.ts'
import { openWidgetHarness } from '../support/widget-harness.ts'
import { hostPage } from '../support/widget-host-page.ts'
import { BenchFailure } from './connection.ts'
import { type Row, toRow } from './report.ts'
import { measureTransfers } from './widget-transfers.ts'

/** The maximum duration of a main-thread task during a 20,000-token reply, in milliseconds. */
const goalMs = 50
/** The maximum time from a click on the launcher to the first message, in milliseconds. */
const openingGoalMs = 500
const rounds = 3
const answerMs = 120_000

export async function measureWidget(): Promise<Row[]> {
  return [...(await measureTransfers()), await measureOpening(), await measureStreaming()]
}

/** Measures the time from a click on the launcher to the visible greeting. */
async function measureOpening(): Promise<Row> {
  const setup = await openWidgetHarness()
  try {
    const openingMs: number[] = []
    for (let round = 0; round < rounds; round++) {
      const { page, launcher, frame } = await setup.open({
        body: setup.script(`data-api-key="${setup.agent.agent_key}"`),
      })
      await launcher.waitFor()
      const clickedAt = performance.now()
      await launcher.click()
      await frame.getByText('Hello!').waitFor()
      openingMs.push(performance.now() - clickedAt)
      await page.close()
    }
    const nothing = openingMs.map(() => Number.NaN)
    return toRow('widget: click to first message, ms', nothing, openingMs, { value: openingGoalMs })
  } finally {
    await setup.close()
  }
}

/** Measures the longest main-thread task in the frame, in CPU milliseconds. */
async function measureStreaming(): Promise<Row> {
  const { config } = await parseConfig({ PARLEY_DATA_DIR: ':memory:', PORT: '0', LOG_LEVEL: 'silent' })
  const service = await createService({ config })
  const page = createServer((_request, response) =>
    response.setHeader('Content-Type', 'text/html').end(hostPage(service.url)),
  )
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
  const browser = await launchBrowser()
  try {
    const key = await createAgent(service)
    const hostUrl = `http://localhost:${(page.address() as AddressInfo).port}/`
    const longestMs: number[] = []
    for (let round = 0; round < rounds; round++) longestMs.push(await measureRound(browser, hostUrl, key))
    const nothing = longestMs.map(() => Number.NaN)
    return toRow('widget, 20,000 tokens streamed: longest task, CPU ms', nothing, longestMs, {
      value: goalMs,
    })
  } finally {
    await browser.close()
    page.close()
    await service.close()
  }
}

async function createAgent({ url, firstParentKey }: Service): Promise<string> {
  const response = await fetch(`${url}/v1/agents`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${firstParentKey}`, 'Content-Type': 'application/yaml' },
    body: 'name: Bench\ninstructions: Answer.\n',
  })
  return ((await response.json()) as { agent_key: string }).agent_key
}

async function measureRound(browser: Browser, hostUrl: string, apiKey: string): Promise<number> {
  const page = await browser.newPage({ viewport: { width: 360, height: 420 } })
  try {
    await page.goto(hostUrl)
    const options = {
      apiKey,
      theme: 'light',
      primaryColor: '#4f46e5',
      debug: false,
      history: true,
      isInline: false,
    }
    await page.evaluate((given) => (globalThis as unknown as HostPage).connect(given), { options, tools: [] })
    const frame = page.frames()[1] as Frame
    await frame.locator('textarea').fill('[[tokens:20000]]')
    return await longestTaskOf(browser, page, async () => {
      await frame.locator('textarea').press('Enter')
      await frame.waitForFunction(hasAnswered, undefined, { timeout: answerMs })
    })
  } finally {
    await page.close()
  }
}

interface HostPage {
  connect(given: object): Promise<void>
}

function hasAnswered(): boolean {
  const reply = document.querySelector('article.reply')
  return reply?.getAttribute('aria-busy') === 'false' && (reply.textContent ?? '').length > 100_000
}

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** CPU time in microseconds. */
  readonly tdur?: number
  readonly args?: { readonly name?: string }
}

async function longestTaskOf(browser: Browser, page: Page, act: () => Promise<void>): Promise<number> {
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] })
  await act()
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as {
    traceEvents: TraceEvent[]
  }
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`
  const isMain = (event: TraceEvent) => event.name === 'thread_name' && event.args?.name === 'CrRendererMain'
  const mainThreads = new Set(traceEvents.filter(isMain).map(threadOf))
  const tasks = traceEvents.filter(
    (event) => event.name.endsWith('RunTask') && mainThreads.has(threadOf(event)),
  )
  if (tasks.length === 0) throw new BenchFailure('The browser trace contains no tasks.')
  return tasks.reduce((longest, { tdur = 0 }) => Math.max(longest, tdur), 0) / 1000
}
