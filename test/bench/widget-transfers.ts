/** Measures the requests and bytes of a page view with the widget, with a closed and with an opened chat. */
import type { Request } from 'playwright-core'
import { openWidgetHarness, type WidgetHarness } from '../support/widget-harness.ts'
import { type Row, toRow } from './report.ts'

/** The limits, in requests and in KB of compressed response bodies. */
const closedGoal = { requests: 1, kilobytes: 6.5 }
const openedGoal = { requests: 10, kilobytes: 165 }

/** Measures with an empty cache and with the key in the loader's URL, as in the console's script tag. */
export async function measureTransfers(): Promise<Row[]> {
  const setup = await openWidgetHarness()
  try {
    const [closed, opened] = [await measure(setup, false), await measure(setup, true)]
    return [
      renderRow('widget: page view with a closed chat, requests', closed.requests, closedGoal.requests),
      renderRow('widget: page view with a closed chat, KB', closed.kilobytes, closedGoal.kilobytes),
      renderRow('widget: page view with an opened chat, requests', opened.requests, openedGoal.requests),
      renderRow('widget: page view with an opened chat, KB', opened.kilobytes, openedGoal.kilobytes),
    ]
  } finally {
    await setup.close()
  }
}

async function measure({ app, agent, browser, open }: WidgetHarness, isOpened: boolean) {
  const finished: Request[] = []
  browser.once('context', (context) =>
    context.on('requestfinished', (request) => {
      if (request.url().startsWith(app.url)) finished.push(request)
    }),
  )
  const source = `${app.url}/embed/parley.js?key=${agent.agent_key.slice(0, 21)}`
  const { page, launcher, frame } = await open({
    body: `<script src="${source}" data-api-key="${agent.agent_key}"></script>`,
  })
  await launcher.waitFor()
  if (isOpened) {
    await launcher.click()
    await frame.getByText('Hello!').waitFor()
  }
  await page.waitForLoadState('networkidle')
  const sizes = await Promise.all(finished.map((request) => request.sizes()))
  const bytes = sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0)
  await page.close()
  return { requests: finished.length, kilobytes: bytes / 1000 }
}

function renderRow(name: string, value: number, goal: number): Row {
  return toRow(name, [Number.NaN], [value], { value: goal })
}
