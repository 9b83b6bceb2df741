/** Tests a whole conversation in two browsers: a visitor's with the widget and the owner's with the console. */
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openConsole } from '../support/console-ui.ts'
import { openWidgetHarness, type WidgetPage } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

const agent = `name: Parcel desk
instructions: Help people who wait for a parcel.
conversations:
  keep: 30d
  handover: {}
`

/** Starts a service with a storing agent; opens the widget as a visitor, and the console as the owner. */
async function openBoth() {
  const harness = await openWidgetHarness({}, agent)
  onTestFinished(harness.close)
  const config = `<script>ParleyChatConfig = ${JSON.stringify({ apiKey: harness.agent.agent_key })}</script>`
  const visitor = await harness.open({ head: config, body: harness.script() })
  await visitor.page.getByRole('button', { name: 'Open chat' }).click()
  const owner = await openConsole(harness.app, harness.browser, '/conversations', { width: 1440 })
  return { app: harness.app, visitor, owner }
}

async function say({ frame }: WidgetPage, text: string): Promise<void> {
  await frame.getByRole('textbox').fill(text)
  await frame.getByRole('textbox').press('Enter')
}

const shows = ({ frame }: WidgetPage, text: string) =>
  frame.getByText(text, { exact: true }).first().waitFor()
const transcript = (page: Page) => page.getByRole('list', { name: 'Transcript' })

test('a visitor reaches a person after a failed answer, and the owner exports the conversation and erases the visitor', async () => {
  const { app, visitor, owner } = await openBoth()
  const { page } = owner
  await page.getByText('No conversations yet').waitFor()

  // The agent fails, and the visitor asks for a person.
  await say(visitor, 'Where is my parcel? [[error:400]]')
  await visitor.frame.getByRole('button', { name: 'Talk to a person' }).click()
  await visitor.frame.getByText('Waiting for a person.').waitFor()

  // The owner notices the visitor, takes over and answers.
  await expect.poll(() => page.title()).toBe('(1) Conversations · Parley')
  await page.getByRole('link', { name: /Where is my parcel/ }).click()
  await page.getByRole('button', { name: 'Take over', exact: true }).click()
  await page.getByRole('textbox', { name: 'Reply' }).fill('It arrives tomorrow.')
  await page.keyboard.press('Enter')
  await shows(visitor, 'It arrives tomorrow.')
  await say(visitor, 'Thank you, that helps.')
  await transcript(page).getByText('Thank you, that helps.').waitFor()

  // The owner hands back, and the visitor rates the agent's next answer.
  await page.locator('h1').click()
  await page.keyboard.press('e')
  await shows(visitor, 'The assistant answers again.')
  await say(visitor, 'Can I change the address?')
  await shows(visitor, 'You said: Can I change the address?')
  await visitor.frame.getByRole('button', { name: 'Bad answer', exact: true }).last().click()
  const feedback = visitor.frame.getByRole('form', { name: 'Feedback on this answer' })
  await feedback.getByRole('radio', { name: 'Incomplete' }).check()
  await feedback.getByRole('button', { name: 'Send' }).click()
  await shows(visitor, 'Thank you!')

  // The owner finds the conversation by its text, and reads why the first answer failed.
  await page.goto(`${app.url}/console/conversations`)
  await page.getByRole('textbox', { name: 'Search conversations' }).fill('"my parcel"')
  await expect.poll(() => page.url()).toContain('q=')
  await page.getByRole('link', { name: /Where is my parcel/ }).click()
  await transcript(page).getByText('You said: Can I change the address?').waitFor()
  await page.getByRole('button', { name: 'Turn 1 · Why' }).click()
  const steps = page.getByRole('list', { name: 'Timeline' }).getByRole('listitem')
  await expect.poll(() => steps.allInnerTexts()).toContainEqual(expect.stringContaining('HTTP 400'))

  // The export contains both turns of the model, and the rating.
  await page.getByRole('tab', { name: 'Conversation' }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export', exact: true }).click(),
  ])
  const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n')
  const turns = lines.map((line) => JSON.parse(line)).filter(({ object }) => object === 'turn')
  expect(turns).toMatchObject([
    { status: 'failed', ratings: [] },
    { status: 'completed', ratings: [{ source: 'visitor', value: 'down', reason: 'incomplete' }] },
  ])

  // The owner erases the visitor; the widget starts again, and no text is left.
  await page.getByRole('region', { name: 'Facts' }).getByRole('link', { name: 'Anonymous' }).click()
  await page.getByRole('button', { name: 'Erase…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Erase visitor' }).click()
  await page.getByRole('heading', { name: 'Visitor erased', level: 1 }).waitFor()
  await visitor.frame.getByText('It arrives tomorrow.', { exact: true }).waitFor({ state: 'detached' })
  expect((await app.call('GET', '/v1/conversations')).body.data).toEqual([])
  expect(owner.complaints).toEqual([])
})
