/** Tests how visitors rate answers in the widget frame. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { openVisible, reopen, type StoredOptions } from '../support/stored-frames.ts'
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

const button = ({ frame }: OpenFrame, name: string) => frame.getByRole('button', { name, exact: true })
const formOf = ({ frame }: OpenFrame) => frame.getByRole('form', { name: 'Feedback on this answer' })

/** Opens a frame with an answer. */
async function openAnswer(options: StoredOptions = {}): Promise<OpenFrame> {
  const opened = await openVisible(harness, options)
  await opened.say('hello')
  await visibleText(opened.frame, 'You said: hello').waitFor()
  await opened.settle()
  return opened
}

/** Returns the visitors' ratings of all turns of the newest conversation, as the API returns them. */
async function readRatings() {
  const { body } = await harness.app.call('GET', '/v1/conversations?limit=1')
  const turns = await harness.app.call('GET', `/v1/conversations/${body.data[0].id}/turns`)
  return turns.body.data.flatMap((turn: { ratings: object[] }) => turn.ratings)
}

describe('a finished answer', () => {
  test('can be rated, with a reason and a comment, and the rating can be changed and removed', async () => {
    const opened = await openAnswer()
    await button(opened, 'Good answer').click()
    await expect.poll(readRatings).toMatchObject([{ source: 'visitor', value: 'up', reason: null }])
    expect(await button(opened, 'Good answer').getAttribute('aria-pressed')).toBe('true')

    await button(opened, 'Bad answer').click()
    await formOf(opened).getByRole('radio', { name: 'Incomplete' }).check()
    await formOf(opened).getByRole('textbox', { name: 'Comment (optional)' }).fill(' The price is missing. ')
    await formOf(opened).getByRole('button', { name: 'Send' }).click()
    await visibleText(opened.frame, 'Thank you!').waitFor()
    await expect
      .poll(readRatings)
      .toMatchObject([{ value: 'down', reason: 'incomplete', comment: 'The price is missing.' }])
    expect(await opened.frame.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe(
      'Bad answer',
    )
    expect(await formOf(opened).count()).toBe(0)

    const reloaded = await reopen(harness, opened)
    await visibleText(reloaded.frame, 'You said: hello').waitFor()
    await expect.poll(() => button(reloaded, 'Bad answer').getAttribute('aria-pressed')).toBe('true')
    await button(reloaded, 'Bad answer').click()
    expect(await formOf(reloaded).getByRole('textbox').inputValue()).toBe('The price is missing.')
    expect(await formOf(reloaded).getByRole('radio', { name: 'Incomplete' }).isChecked()).toBe(true)
    await formOf(reloaded).getByRole('button', { name: 'Remove rating' }).click()
    await expect.poll(readRatings).toEqual([])
    expect(await button(reloaded, 'Bad answer').getAttribute('aria-pressed')).toBe('false')
    expect(reloaded.complaints).toEqual([])
  })

  test('can be rated with the keyboard, and Escape closes the form but not the window', async () => {
    const opened = await openAnswer()
    const { keyboard } = opened.page
    await button(opened, 'Bad answer').focus()
    await keyboard.press('Enter')
    await formOf(opened).getByRole('radio').first().focus()
    await keyboard.press('ArrowDown')
    expect(await formOf(opened).getByRole('radio', { name: 'Incomplete' }).isChecked()).toBe(true)
    await keyboard.press('Tab')
    await keyboard.type('Too short')
    await keyboard.press('Tab')
    await keyboard.press('Tab')
    await keyboard.press('Tab')
    await keyboard.press('Enter')
    await expect.poll(readRatings).toMatchObject([{ reason: 'incomplete', comment: 'Too short' }])
    await button(opened, 'Bad answer').click()
    await formOf(opened).getByRole('textbox').focus()
    await keyboard.press('Escape')
    await expect.poll(() => formOf(opened).count()).toBe(0)
    expect((await opened.said()).filter(({ type }) => type === 'close')).toEqual([])
  })

  test('that is rated as good offers no reasons, and accepts a comment of at most 1,000 characters', async () => {
    const opened = await openAnswer()
    await button(opened, 'Good answer').click()
    const comment = formOf(opened).getByRole('textbox')
    expect(await comment.getAttribute('maxlength')).toBe('1000')
    expect(await formOf(opened).getByRole('radio').count()).toBe(0)
  })

  test('shows why a rating could not be stored, and the visitor can send the rating again', async () => {
    const opened = await openAnswer()
    await opened.page.route('**/trpc/visitor.rate*', (route) => route.abort(), { times: 1 })
    await button(opened, 'Bad answer').click()
    await formOf(opened).getByText('cannot be reached').waitFor()
    expect(await button(opened, 'Bad answer').getAttribute('aria-pressed')).toBe('false')
    await formOf(opened).getByRole('button', { name: 'Send' }).click()
    await expect.poll(readRatings).toMatchObject([{ value: 'down' }])
  })

  test.each(['light', 'dark'] as const)('has an accessible form in the %s theme', async (theme) => {
    const opened = await openAnswer({ options: { theme } })
    await button(opened, 'Bad answer').click()
    await formOf(opened).getByRole('radio', { name: 'Unsafe' }).check()
    expect(await listAxeFaults(opened.frame)).toEqual([])
  })
})

test.each([
  [
    'the agent does not allow it',
    keeper.replace('  keep: 30d\n', '  keep: 30d\n  visitor: { rate: false }\n'),
  ],
  ['the server does not store the conversation', 'name: Plain\ninstructions: Help.\n'],
])('answers cannot be rated if %s', async (_, yaml) => {
  const agent = await harness.app.createAgent(yaml)
  const opened = await openAnswer({ key: agent.agent_key })
  await button(opened, 'Copy answer').last().waitFor()
  expect(await button(opened, 'Good answer').count()).toBe(0)
})
