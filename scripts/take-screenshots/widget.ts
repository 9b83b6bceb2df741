/** Opens the hotel's website and uses the widget on it. */
import type { FrameLocator, Page } from 'playwright-core'
import { renderHotelPage } from './hotel-page.ts'
import type { Showcase } from './showcase.ts'

/** Opens the website with the widget open, or closed with `autoOpen: false`. */
export async function openHotel(
  page: Page,
  { app, agentKey }: Pick<Showcase, 'app' | 'agentKey'>,
  options: object = {},
): Promise<void> {
  const all = { autoOpen: true, width: 400, height: 660, ...options }
  const html = renderHotelPage(app.url, agentKey, { history: false, ...all })
  const url = `${app.url}/hotel`
  await page.unroute(url)
  await page.route(url, (route) => route.fulfill({ contentType: 'text/html', body: html }))
  await page.goto(url)
  await page.locator('parley-chat .launcher').waitFor({ state: 'attached' })
  if (all.autoOpen) await frameOf(page).getByRole('textbox').waitFor()
}

export function frameOf(page: Page): FrameLocator {
  return page.frameLocator('parley-chat iframe')
}

/** Sends a message, and waits until the answer contains a text. */
export async function askWidget(page: Page, question: string, expected: string | RegExp): Promise<void> {
  const frame = frameOf(page)
  await frame.getByRole('textbox').fill(question)
  await frame.getByRole('button', { name: 'Send', exact: true }).click()
  await frame.getByText(expected).first().waitFor()
  await frame.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' })
}
