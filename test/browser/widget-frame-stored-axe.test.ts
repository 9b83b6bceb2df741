/** Tests that the widget's states for stored conversations have no accessibility violations. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import {
  type FrameHarness,
  keeper,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness({}, keeper)
})
afterAll(() => harness?.close())

const words = 'one two three four five six seven eight nine ten eleven twelve'

async function open(theme: 'light' | 'dark'): Promise<OpenFrame> {
  const opened = await harness.open({ isSameSite: true, options: { theme } })
  await opened.post({ type: 'visibility', isOpen: true })
  return opened
}

async function choose({ frame }: OpenFrame, name: string): Promise<void> {
  await frame.getByRole('button', { name: 'More actions' }).click()
  await frame.getByRole('menuitem', { name }).click()
}

describe.each(['light', 'dark'] as const)(
  'in the %s theme, there are no accessibility violations in',
  (theme) => {
    test('the notice or a running, stopped or failed answer', async () => {
      const opened = await open(theme)
      const { frame } = opened
      await frame.locator('.notice').waitFor()
      expect(await listAxeFaults(frame)).toEqual([])
      await opened.say(`[[delay:600]] ${words}`)
      await visibleText(frame, /You said: one/).waitFor()
      await frame.getByRole('button', { name: 'Stop' }).waitFor()
      expect(await listAxeFaults(frame)).toEqual([])
      await frame.getByRole('button', { name: 'Stop' }).click()
      await frame.getByRole('button', { name: 'Continue' }).waitFor()
      expect(await listAxeFaults(frame)).toEqual([])
      await opened.say('[[error:500]]')
      await frame.getByRole('button', { name: 'Try again' }).waitFor()
      expect(await listAxeFaults(frame)).toEqual([])
    })

    test('the menu, the list of earlier conversations or the confirmation of a deletion', async () => {
      const opened = await open(theme)
      const { frame } = opened
      await opened.say(`[[delay:600]] ${words}`)
      await visibleText(frame, /You said: one/).waitFor()
      await frame.getByRole('button', { name: 'More actions' }).click()
      await frame.getByRole('menuitem', { name: 'Earlier conversations' }).waitFor()
      expect(await listAxeFaults(frame)).toEqual([])
      await opened.page.keyboard.press('Escape')
      await choose(opened, 'New conversation')
      await choose(opened, 'Earlier conversations')
      await frame.locator('.conversation-button').getByText('Unread').waitFor()
      expect(await listAxeFaults(frame)).toEqual([])
      await frame
        .getByRole('button', { name: /^Delete/ })
        .first()
        .click()
      await frame.getByRole('button', { name: 'Delete', exact: true }).waitFor()
      expect(await listAxeFaults(frame)).toEqual([])
    })
  },
)
