/** Tests the widget's appearance: the agent's theme, the page's options, and long answers. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { openWidgetHarness, type WidgetHarness } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

let harness: WidgetHarness
beforeAll(async () => {
  harness = await openWidgetHarness(
    {},
    `name: Helper
instructions: Help people.
embed:
  theme:
    primaryColor: "#0f766e"
    headerStyle: solid
    avatar: ${pixel}
    radius: 8
    density: compact
    font: serif
    position: bottom-left
    width: 500
`,
  )
})
afterAll(() => harness?.close())

const open = (options: object = {}, browser: object = {}) =>
  harness.open(
    {
      head: `<script>ParleyChatConfig = ${JSON.stringify({ apiKey: harness.agent.agent_key, ...options })}</script>`,
      body: harness.script(),
    },
    browser,
  )

type Opened = Awaited<ReturnType<typeof open>>

async function openWindow(opened: Opened): Promise<void> {
  await opened.page.evaluate('ParleyChat.ready.then((chat) => chat.open())')
  await opened.frame.getByRole('textbox').waitFor()
}

/** Returns computed styles of the first element that matches the selector in the frame. */
const styleOf = (opened: Opened, selector: string, ...names: string[]) =>
  opened.frame
    .locator(selector)
    .first()
    .evaluate((element, wanted) => {
      const style = getComputedStyle(element)
      return Object.fromEntries(wanted.map((name) => [name, style.getPropertyValue(name)]))
    }, names)

describe('the theme of the agent', () => {
  test('sets the colors, the typeface, the avatar and the density of the frame', async () => {
    const opened = await open()
    await openWindow(opened)
    expect(await styleOf(opened, '.window > .header', 'background-color', 'color')).toEqual({
      'background-color': 'rgb(15, 118, 110)',
      color: 'rgb(255, 255, 255)',
    })
    const body = await styleOf(opened, 'body', 'font-family', 'font-size')
    expect(body).toEqual({ 'font-family': expect.stringMatching(/^Charter/), 'font-size': '14px' })
    expect((await styleOf(opened, '.face', 'background-image'))['background-image']).toContain(
      'data:image/png',
    )
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })

  test('is overridden by the options of the page', async () => {
    const opened = await open({ primaryColor: '#b91c1c', headerStyle: 'plain', font: 'system' })
    await openWindow(opened)
    const header = await styleOf(opened, '.window > .header', 'background-color')
    expect(header['background-color']).toBe('rgba(0, 0, 0, 0)')
    expect((await styleOf(opened, 'body', 'font-family'))['font-family']).toMatch(/^system-ui/)
    expect(
      await opened.frame.locator('html').evaluate((root) => root.style.getPropertyValue('--accent')),
    ).toBe('#b91c1c')
    await opened.page.close()
  })

  test.each(['light', 'dark'] as const)(
    'has no accessibility violations in the %s scheme',
    async (colorScheme) => {
      const opened = await open({}, { colorScheme })
      await openWindow(opened)
      await opened.frame.getByRole('textbox').fill('Hello')
      await opened.frame.getByRole('textbox').press('Enter')
      await opened.frame.locator('main').getByText('You said: Hello').waitFor()
      expect(await listAxeFaults(opened.page.frames()[1] as never)).toEqual([])
      await opened.page.close()
    },
  )
})

describe('the newest answer', () => {
  const question = `Explain it. ${'It is a long story. '.repeat(300)}`
  const topOf = (opened: Opened, selector: string) =>
    opened.frame
      .locator(selector)
      .last()
      .evaluate((element) => Math.round(element.getBoundingClientRect().top))

  test('grows below the pinned question if it is long, and a button jumps to its end', async () => {
    const opened = await open()
    await openWindow(opened)
    const input = opened.frame.getByRole('textbox')
    await input.fill('Hello')
    await input.press('Enter')
    await opened.frame.locator('main').getByText('You said: Hello').waitFor()
    await input.fill(question)
    await input.press('Enter')
    await opened.frame.locator('.reply .actions').nth(1).waitFor()
    const jump = opened.frame.getByRole('button', { name: 'Jump to latest' })
    await jump.waitFor()
    const bottomOfQuestion = await opened.frame
      .locator('.user')
      .last()
      .evaluate((element) => element.getBoundingClientRect().bottom)
    const header = await topOf(opened, '.scroller')
    expect(bottomOfQuestion).toBeGreaterThan(header)
    await jump.click()
    await jump.waitFor({ state: 'detached' })
    const scroller = opened.frame.locator('.scroller')
    expect(
      await scroller.evaluate(
        ({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight,
      ),
    ).toBeLessThan(2)
    await opened.page.close()
  })

  test('does not move its question, which is pinned at the top', async () => {
    const opened = await open()
    await openWindow(opened)
    const input = opened.frame.getByRole('textbox')
    for (const text of ['One', 'Two', 'Three', 'Four', 'Five']) {
      await input.fill(text)
      await input.press('Enter')
      await opened.frame.locator('main').getByText(`You said: ${text}`).waitFor()
      await opened.frame.locator('[aria-busy=true]').waitFor({ state: 'detached' })
    }
    const distance = (await topOf(opened, '.user')) - (await topOf(opened, '.scroller'))
    expect(distance).toBe(12)
    await opened.page.close()
  })
})
