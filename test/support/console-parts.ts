/** What people do on the console's pages, and what they read there. */
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'

/** Goes to a page by the navigation. */
export async function goTo(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
}

/** Makes an agent of the template for customer support; it greets with `Hello! What can I help you with?`. */
export async function createOfTemplate(page: Page, name: string): Promise<void> {
  await goTo(page, 'Agents')
  await page.getByRole('link', { name: 'New agent' }).first().click()
  await page.getByRole('link', { name: /Customer support/ }).click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name)
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
  await page.getByText('Saved as version 1').waitFor()
}

/** Says something to the agent in its editor, and waits for the mock's echo of it; answers the line of facts below it. */
export async function tryOut(page: Page, text: string): Promise<string> {
  await page.getByRole('button', { name: 'Try it' }).click()
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('.playground-text', { hasText: `You said: ${text}` }).waitFor()
  return page.getByRole('group', { name: 'Answer details' }).innerText()
}

/** The key that a dialog shows. */
export async function readKey(page: Page): Promise<string> {
  return (await page.getByRole('dialog').getByRole('region', { name: 'New key' }).innerText()).trim()
}

/** The line of a table that has that name in it. */
export function rowOf(page: Page, name: string): Locator {
  return page.getByRole('table').getByRole('row', { name: new RegExp(name) })
}

/** The cells of the lines of a table, without its head and its last line. */
export async function readTable(page: Page, name: string): Promise<string[][]> {
  const table = page.getByRole('table', { name })
  await table.waitFor()
  return table.evaluate((element) =>
    [...element.querySelectorAll('tbody tr')].map((row) =>
      [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? ''),
    ),
  )
}

/** The video that is shown has a poster, and its pictures can be played, not its sound alone. */
export async function expectToPlay(page: Page): Promise<void> {
  const video = page.locator('video')
  const readWidth = () => video.evaluate((element) => (element as HTMLVideoElement).videoWidth)
  await expect.poll(readWidth, { timeout: 60_000 }).toBeGreaterThan(0)
  expect(await video.getAttribute('poster')).toMatch(/\/poster$/)
}
