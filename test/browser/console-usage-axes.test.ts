/** Tests the axes and the labels of the console's usage charts. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { addDays, dayOf } from '../../src/usage/days.ts'
import { renderHistogram } from '../../src/usage/histogram.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const today = dayOf(Date.now())

interface Day {
  readonly requests: number
  readonly agentId?: string
  /** Days before today. */
  readonly age?: number
}

/** Inserts usage records. */
async function writeUsage(app: TestApp, days: readonly Day[]): Promise<void> {
  const histogram = renderHistogram(new Map([[60, 1]]))
  const rows = days.map(({ requests, agentId = '', age = 0 }) => ({
    ...{ parent_key_id: app.key.slice(4, 16), day: addDays(today, -age), agent_id: agentId },
    ...{ model: 'mock', provider: 'mock', requests, errors: 0, estimated: 0 },
    ...{ prompt_tokens: 0, completion_tokens: 0 },
    ...{ latency_histogram: histogram, first_byte_histogram: histogram },
  }))
  await app.service.deps.db.insertInto('usage_days').values(rows).execute()
}

const chartOf = (page: Page) =>
  page.getByRole('region', { name: 'Requests', exact: true }).locator('svg[role=img]')

test.each([
  [1, ['0', '1']],
  [7, ['0', '2', '4', '6', '8']],
  [10, ['0', '5', '10']],
  [230, ['0', '100', '200', '300']],
  [8_500, ['0', '5K', '10K']],
] as const)('the axis for at most %i requests a day has the values %j', async (requests, labels) => {
  const app = await startApp()
  await writeUsage(app, [{ requests }, { requests: 1, age: 2 }])
  const { page } = await openConsole(app, browser, '/usage?range=7')
  await expect.poll(() => chartOf(page).locator('g > text').allTextContents()).toEqual(labels)
})

test('the date labels of a year never overlap and include the last day, at any width', async () => {
  const app = await startApp()
  await writeUsage(app, [{ requests: 3 }, { requests: 5, age: 300 }])
  const { page } = await openConsole(app, browser, '/usage?range=365', { width: 1440 })
  for (const width of [1440, 900, 390]) {
    await page.setViewportSize({ width, height: 900 })
    const labels = chartOf(page).locator(':scope > text')
    await expect.poll(async () => (await chartOf(page).boundingBox())?.width ?? 0).toBeLessThan(width)
    await labels.last().waitFor()
    const boxes = await labels.evaluateAll((elements) =>
      elements.map((element) => {
        const { left, right } = element.getBoundingClientRect()
        return { left, right }
      }),
    )
    expect(boxes.length).toBeGreaterThan(1)
    for (const [index, { left }] of boxes.slice(1).entries())
      expect(left).toBeGreaterThan(boxes[index]?.right ?? 0)
    const month = new Date(`${today}T00:00:00Z`).toLocaleDateString('en-US', {
      month: 'short',
      day: 'numeric',
      timeZone: 'UTC',
    })
    expect(await labels.last().textContent()).toBe(month)
  }
})

test('bar labels wrap between words, and only a label that does not fit on two lines is shortened', async () => {
  const app = await startApp()
  const names = {
    Support: ['Support'],
    'Concierge of the Grand Hotel by the Sea': ['Concierge of the Grand', 'Hotel by the Sea'],
    ['x'.repeat(60)]: ['x'.repeat(24), `${'x'.repeat(23)}…`],
    ['漢'.repeat(30)]: ['漢'.repeat(24), '漢'.repeat(6)],
    ['😀'.repeat(30)]: ['😀'.repeat(24), '😀'.repeat(6)],
  }
  for (const [index, name] of Object.keys(names).entries()) {
    const { agent_id: agentId } = await app.createAgent(`name: ${name}\ninstructions: Help.\n`)
    await writeUsage(app, [{ requests: 100 - index, agentId }])
  }
  const { page } = await openConsole(app, browser, '/usage?by=agent', { width: 1440 })
  const labels = chartOf(page).locator('text:has(title)')
  await expect.poll(() => labels.count()).toBe(5)
  const shown = await labels.evaluateAll((elements) =>
    elements.map((element) => [
      element.querySelector('title')?.textContent,
      [...element.querySelectorAll('tspan')].map((line) => line.textContent),
    ]),
  )
  expect(Object.fromEntries(shown)).toEqual(names)
})

test('a narrow bar chart of agents hides axis values that would overlap', async () => {
  const app = await startApp()
  const { agent_id: agentId } = await app.createAgent()
  await writeUsage(app, [{ requests: 7_900_000, agentId }])
  const { page } = await openConsole(app, browser, '/usage?by=agent', { width: 320, height: 800 })
  const labels = chartOf(page).locator('g > text:not(:has(title))')
  await expect.poll(() => labels.last().textContent()).toBe('8M')
  const boxes = await labels.evaluateAll((elements) =>
    elements
      .filter((element) => element.textContent !== '')
      .map((element) => {
        const { left, right } = element.getBoundingClientRect()
        return { left, right }
      }),
  )
  expect(boxes.length).toBeGreaterThan(1)
  for (const [index, { left }] of boxes.slice(1).entries())
    expect(left).toBeGreaterThanOrEqual(boxes[index]?.right ?? 0)
})
