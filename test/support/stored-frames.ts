/** Opens frames whose conversations are stored on the server, and reads their messages and localStorage. */
import type { FrameHarness, OpenFrame } from './widget-frame.ts'

export type StoredOptions = Parameters<FrameHarness['open']>[0]

export const storedIn = ({ frame }: OpenFrame) => frame.evaluate(() => ({ ...localStorage }))

/** Opens a frame on a page of the same site, and sends the message that the window is open. */
export async function openVisible(harness: FrameHarness, options: StoredOptions = {}): Promise<OpenFrame> {
  const opened = await harness.open({ isSameSite: true, ...options })
  await opened.post({ type: 'visibility', isOpen: true })
  return opened
}

/** Leaves the page, and opens a frame on a new page in the same browser context. */
export async function reopen(
  harness: FrameHarness,
  opened: OpenFrame,
  more: StoredOptions = {},
): Promise<OpenFrame> {
  await opened.page.goto('about:blank')
  return openVisible(harness, { beside: opened, ...more })
}

export const words = 'one two three four five six seven eight nine ten eleven twelve'
/** A message whose answer takes a few seconds: the mock model waits 200 ms before each chunk. */
export const slow = `[[delay:200]] ${words} the end`
/** The complete answer to `slow`. */
export const whole = `You said: ${words} the end`

/** Waits for the beginning of the slow answer. */
export const begins = ({ frame }: OpenFrame) =>
  frame.locator('article.reply', { hasText: 'You said: one two' }).waitFor()

/** Returns the texts of all messages, oldest first. */
export const textsOf = async ({ frame }: OpenFrame) =>
  frame.locator('article :is(.bubble, .prose)').allTextContents()

/** The greeting of the agent `keeper`. */
export const greeting = 'Hello! I am here.'

/** Selects an item of the menu "More actions". */
export async function choose({ frame }: OpenFrame, name: string): Promise<void> {
  await frame.getByRole('button', { name: 'More actions' }).click()
  await frame.getByRole('menuitem', { name }).click()
}
