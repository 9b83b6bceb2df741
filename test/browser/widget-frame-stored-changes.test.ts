/** Tests how visitors change messages and request other answers in conversations that the server stores. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { greeting, openVisible, reopen, textsOf } from '../support/stored-frames.ts'
import {
  type FrameHarness,
  keeper,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness({}, keeper)
})
afterAll(() => harness?.close())

/** Sends each message after the previous one was answered. */
async function askAll(opened: OpenFrame, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    await opened.say(text)
    await visibleText(opened.frame, `You said: ${text}`).waitFor()
    await opened.settle()
  }
}

async function openTwo(...texts: readonly string[]) {
  const one = await openVisible(harness)
  await askAll(one, ...texts)
  const other = await openVisible(harness, { beside: one })
  await visibleText(other.frame, `You said: ${texts.at(-1)}`).waitFor()
  return { one, other, tabs: [one, other] }
}

const exchange = (...texts: readonly string[]) => texts.flatMap((text) => [text, `You said: ${text}`])

async function edit({ frame }: OpenFrame, at: number, text: string): Promise<void> {
  await frame.getByRole('button', { name: 'Edit message' }).nth(at).click()
  const editor = frame.getByRole('textbox', { name: 'Edit your message' })
  await editor.fill(text)
  await editor.press('Enter')
}

async function expectTexts(tabs: readonly OpenFrame[], ...texts: readonly string[]): Promise<void> {
  for (const tab of tabs) await expect.poll(() => textsOf(tab)).toEqual([greeting, ...texts])
}

describe('in a stored conversation, a message', () => {
  test('that is edited replaces everything after it in both tabs and after a reload', async () => {
    const { one, tabs } = await openTwo('first', 'second', 'third')
    await edit(one, 1, 'other')
    await expectTexts(tabs, ...exchange('first', 'other'))
    await one.settle()
    expect(await listAxeFaults(one.frame)).toEqual([])
    expect(one.complaints).toEqual([])
    const reloaded = await reopen(harness, one)
    await expectTexts([reloaded], ...exchange('first', 'other'))
  })

  test('that is removed disappears with its answer in both tabs, and the confirmation states what the log keeps', async () => {
    const { one, other, tabs } = await openTwo('first', 'second')
    await one.frame.getByRole('button', { name: 'Remove message' }).first().click()
    const dialog = one.frame.getByRole('dialog')
    await dialog.getByText("The operator's record keeps both").waitFor()
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await expectTexts(tabs, ...exchange('second'))
    await askAll(other, 'third')
    await expectTexts(tabs, ...exchange('second', 'third'))
  })

  test('that was not sent is removed without a note about what the log keeps', async () => {
    const opened = await openVisible(harness)
    await askAll(opened, 'first')
    await opened.page.route('**/trpc/visitor.send*', (route) => route.abort())
    await opened.say('lost')
    await opened.frame.getByRole('button', { name: 'Try again' }).waitFor()
    await opened.frame.getByRole('button', { name: 'Remove message' }).last().click()
    const dialog = opened.frame.getByRole('dialog')
    await dialog.getByRole('heading', { name: 'Remove this message?' }).waitFor()
    expect(await dialog.locator('p').count()).toBe(0)
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
    await expectTexts([opened], ...exchange('first'))
  })

  test('stays unchanged if its edit is rejected, and the edited text is in the input', async () => {
    const opened = await openVisible(harness)
    await askAll(opened, 'first')
    await opened.page.route('**/trpc/visitor.send*', (route) => route.abort(), { times: 1 })
    await edit(opened, 0, 'lost')
    await expect.poll(() => opened.frame.locator('textarea').inputValue()).toBe('lost')
    await expectTexts([opened], ...exchange('first'))
  })
})

describe('in a stored conversation, an answer', () => {
  test('that is requested again has versions to page through in both tabs and after a reload', async () => {
    const { one, other, tabs } = await openTwo('which')
    await one.frame.getByRole('button', { name: 'Answer again' }).click()
    for (const tab of tabs) await tab.frame.getByRole('group', { name: 'Answer 2 of 2' }).waitFor()
    await expectTexts(tabs, ...exchange('which'))
    await other.settle()
    await other.frame.getByRole('button', { name: 'Answer again' }).click()
    const pager = one.frame.getByRole('group', { name: 'Answer 3 of 3' })
    await pager.getByRole('button', { name: 'Previous answer' }).click()
    await one.frame.getByRole('group', { name: 'Answer 2 of 3' }).waitFor()
    const reloaded = await reopen(harness, one)
    await reloaded.frame.getByRole('group', { name: 'Answer 3 of 3' }).waitFor()
    await expectTexts([reloaded], ...exchange('which'))
    await askAll(reloaded, 'next')
    await expectTexts([reloaded, other], ...exchange('which', 'next'))
  })
})
