/** Performs common user actions in the console and reads their results. */
import type { FrameLocator, Locator, Page } from 'playwright-core'
import { expect } from 'vitest'

/** Opens a page through the navigation menu. */
export async function openMenuPage(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
}

/** Creates an agent from the customer support template. */
export async function createFromTemplate(page: Page, name: string): Promise<void> {
  await openMenuPage(page, 'Agents')
  await page.getByRole('link', { name: 'New agent' }).first().click()
  await page.getByRole('link', { name: /Customer support/ }).click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name)
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
  await page.getByText('Saved as version 1').waitFor()
}

/** Sends a message in the playground and waits for the echo; returns the details below the reply. */
export async function chatInPlayground(page: Page, text: string): Promise<string> {
  await page.getByRole('button', { name: 'Try it' }).click()
  await askInPlayground(page, text)
  await playgroundFrame(page).getByText(`You said: ${text}`, { exact: true }).waitFor()
  const details = page.getByRole('group', { name: 'Answer details' }).filter({ hasText: 'total' })
  return details.innerText()
}

/** Returns the frame of one of the playground's chats, by default the first. */
export function playgroundFrame(page: Page, index = 0): FrameLocator {
  return page.locator('.lane iframe').nth(index).contentFrame()
}

/** Sends a message in one of the playground's chats. */
export async function askInPlayground(page: Page, text: string, index = 0): Promise<void> {
  const chat = playgroundFrame(page, index)
  await chat.getByRole('textbox').fill(text)
  // Unlike the Enter key, the button waits until the previous answer has ended.
  await chat.getByRole('button', { name: 'Send', exact: true }).click()
}

/** Reads the key that a dialog shows. */
export async function readKey(page: Page): Promise<string> {
  return (await page.getByRole('dialog').getByRole('region', { name: 'New key' }).innerText()).trim()
}

/** Finds the table row that contains the name. */
export function rowOf(page: Page, name: string): Locator {
  return page.getByRole('table').getByRole('row', { name: new RegExp(name) })
}

/** Returns the cell texts of a table's body, row by row. */
export async function readTable(page: Page, name: string): Promise<string[][]> {
  const table = page.getByRole('table', { name })
  await table.waitFor()
  return table.evaluate((element) =>
    [...element.querySelectorAll('tbody tr')].map((row) =>
      [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? ''),
    ),
  )
}

/** Asserts that the displayed video has a poster and that the browser can decode it. */
export async function expectPlayback(page: Page): Promise<void> {
  const video = page.locator('video')
  const readWidth = () => video.evaluate((element) => (element as HTMLVideoElement).videoWidth)
  await expect.poll(readWidth, { timeout: 60_000 }).toBeGreaterThan(0)
  expect(await video.getAttribute('poster')).toMatch(/\/poster$/)
}
