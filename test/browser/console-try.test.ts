/** Tests the playground, which runs a definition next to the agent editor. */
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { askInPlayground, playgroundFrame } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import { tool } from '../support/tools.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const definition = 'name: Guide\ninstructions: Help.\n'
const greeting = `${definition}embed:\n  greeting: Welcome aboard!\n  starters:\n    - Where are you?\n`

/** A transparent PNG image. */
const onePixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

const traceOf = (page: Page) => page.getByRole('complementary', { name: 'Trace' })

describe('the playground', () => {
  test('shows the draft in the widget, with its greeting, starters and Markdown', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(greeting)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}?view=try`, {
      width: 1440,
    })
    const chat = playgroundFrame(page)
    await chat.getByText('Welcome aboard!').waitFor()
    await chat.getByRole('button', { name: 'Where are you?' }).click()
    await chat.getByText('You said: Where are you?', { exact: true }).waitFor()
    await askInPlayground(page, '**bold**')
    await chat.locator('strong', { hasText: 'bold' }).waitFor()
    await saveScreenshot(page, 'try-light')
    expect(await listAxeFaults(page)).toEqual([])
    expect(complaints).toEqual([])
  })

  test('updates the widget while the user edits, and stores no agent key in its frame', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent(greeting)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}?try=true`)
    await playgroundFrame(page).getByText('Welcome aboard!').waitFor()
    await page.getByRole('textbox', { name: 'Greeting' }).fill('Good day.')
    await playgroundFrame(page).getByText('Good day.').waitFor()
    expect(page.url()).not.toContain('agnt_key')
    const text = await page.locator('.lane iframe').evaluate((frame) => {
      const { documentElement, defaultView } = (frame as HTMLIFrameElement).contentDocument as Document
      return documentElement.outerHTML + JSON.stringify({ ...defaultView?.localStorage })
    })
    expect(text).not.toContain(agent_key)
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).body.version).toBe(1)
    expect(complaints).toEqual([])
  })

  test("shows the definition's theme, with images from its hosts, and updates with each change", async () => {
    const app = await startApp()
    const theme = 'primaryColor: "#0f766e"\n    headerStyle: solid\n    avatar: https://img.example/a.png'
    const { agent_id } = await app.createAgent(`${definition}embed:\n  theme:\n    ${theme}\n`)
    const { page, context } = await openConsole(app, browser)
    let images = 0
    await context.route('https://img.example/**', (route) => {
      images += 1
      return route.fulfill({ contentType: 'image/png', body: onePixel })
    })
    await page.goto(`${app.url}/console/agents/${agent_id}?view=yaml&try=true`)
    const header = playgroundFrame(page).locator('header')
    const root = playgroundFrame(page).locator('html')
    const background = () => header.evaluate((element) => getComputedStyle(element).backgroundColor)
    await playgroundFrame(page).getByRole('textbox').waitFor()
    await expect.poll(background).toBe('rgb(15, 118, 110)')
    await expect.poll(() => images).toBeGreaterThan(0)
    await askInPlayground(page, 'Hello')
    await playgroundFrame(page).getByText('You said: Hello', { exact: true }).waitFor()
    const editor = page.getByRole('textbox', { name: 'Definition as YAML' })
    await editor.fill(`${definition}embed:\n  theme:\n    primaryColor: "#b91c1c"\n    headerStyle: solid\n`)
    await expect.poll(background).toBe('rgb(185, 28, 28)')
    await playgroundFrame(page).getByText('You said: Hello', { exact: true }).waitFor()
    expect(await root.getAttribute('data-avatar')).toBeNull()
  })

  test("shows the chat's input without scrolling on a laptop", async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(greeting)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}?view=try`, { height: 800 })
    const input = playgroundFrame(page).getByRole('textbox')
    await input.waitFor()
    const isVisible = async () => {
      const box = await input.boundingBox()
      return box !== null && box.y > 0 && box.y + box.height < 800
    }
    await expect.poll(isVisible).toBe(true)
    await saveScreenshot(page, 'try-laptop')
    await page.getByRole('button', { name: 'Show next to the form' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).waitFor()
    await expect.poll(isVisible).toBe(true)
    await saveScreenshot(page, 'try-laptop-form')
  })

  test('traces the route, models, tools, tokens and times of each answer', async () => {
    const app = await startApp({}, { tools: { weather: tool(() => ({ degrees: 21 })) } })
    const { agent_id } = await app.createAgent(`${definition}tools:\n  - weather\n`)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}?view=try`, {
      width: 1440,
      colorScheme: 'dark',
    })
    await askInPlayground(page, '[[tool:weather {"city":"Oslo"}]]')
    const trace = traceOf(page)
    const details = trace.getByRole('group', { name: 'Answer details' })
    await details.getByText(/^mock\/mock · \d+ \+ \d+ tokens · first text .* · .* total$/).waitFor()
    await trace.getByText('Route: mock/mock').waitFor()
    expect(await trace.getByText(/first output .* tokens/).count()).toBe(2)
    await trace.getByText('Server tool').waitFor()
    await trace.getByText('Arguments and result').click()
    await trace.getByLabel('Arguments of weather').getByText('Oslo').waitFor()
    await trace.getByLabel('Result of weather').getByText('21').waitFor()
    await trace.getByText('Raw data (1 request)').click()
    await trace.getByLabel('Raw data', { exact: true }).getByText('"is_traced": true').waitFor()
    await saveScreenshot(page, 'try-trace-dark')
    expect(await listAxeFaults(page)).toEqual([])
    expect(complaints).toEqual([])
  })

  test('lets the tester enter the results of page tools and of client tools', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(`${definition}tools:\n  - book\n`)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}?view=try`, {
      width: 1440,
    })
    await page.getByRole('button', { name: 'Page tools' }).click()
    await page.getByRole('button', { name: 'Add page tool' }).click()
    await page.getByRole('textbox', { name: 'Tool name' }).fill('show_room')
    await page.getByRole('checkbox', { name: 'The visitor must allow each call' }).check()
    await page.getByRole('button', { name: 'Done' }).click()
    await askInPlayground(page, '[[tool:postMessage_show_room {"room":"Heron"}]]')
    await playgroundFrame(page).getByRole('button', { name: 'Allow once' }).click()
    const call = page.getByRole('form', { name: 'Call to show_room' })
    await call.getByText('{"room":"Heron"}').waitFor()
    await saveScreenshot(page, 'try-tool-light')
    expect(await listAxeFaults(page)).toEqual([])
    await call.getByRole('textbox', { name: 'Result of show_room' }).fill('The room is shown.')
    await call.getByRole('button', { name: 'Send result' }).click()
    await playgroundFrame(page).getByText('The tool answered: The room is shown.').waitFor()
    await traceOf(page).getByText('Page tool').waitFor()
    await askInPlayground(page, '[[tool:book {"day":"Friday"}]]')
    await page.getByRole('textbox', { name: 'Result of book' }).fill('{"booked":true}')
    await page.getByRole('button', { name: 'Send result' }).click()
    await playgroundFrame(page).getByText('The tool answered: {"booked":true}').waitFor()
    expect(complaints).toEqual([])
  })

  test('sends one message to the draft, the saved version and another model', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}?view=try`, {
      width: 1440,
      colorScheme: 'dark',
    })
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('button', { name: 'Compare' }).click()
    const choices = page.getByRole('combobox', { name: 'Version or model' })
    await choices.nth(1).click()
    await page.getByRole('option', { name: 'Saved version' }).click()
    await choices.nth(2).click()
    await page.getByRole('option', { name: 'mock/mock', exact: true }).click()
    await page.locator('.lane-stage[data-ready="true"]').nth(2).waitFor()
    await askInPlayground(page, 'Hello', 1)
    for (const index of [0, 1, 2])
      await playgroundFrame(page, index).getByText('You said: Hello', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Remove the chat with the saved version' }).waitFor()
    await saveScreenshot(page, 'compare-dark')
    expect(await listAxeFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Remove the chat with mock' }).click()
    expect(await page.locator('.lane').count()).toBe(2)
    expect(complaints).toEqual([])
  })

  test('lets the tester edit and resend a message, and repeat saved test questions', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}?view=try`, {
      width: 1440,
    })
    await askInPlayground(page, 'First')
    await playgroundFrame(page).getByText('You said: First', { exact: true }).waitFor()
    await askInPlayground(page, 'Second')
    await playgroundFrame(page).getByText('You said: Second', { exact: true }).waitFor()
    const first = traceOf(page).getByRole('region', { name: 'Trace of “First”' })
    await first.getByRole('button', { name: 'Save as a test question' }).click()
    await first.getByRole('button', { name: 'Edit and resend' }).click()
    await page.getByRole('textbox', { name: 'Edit the message' }).fill('Changed')
    await page.getByRole('button', { name: 'Resend', exact: true }).click()
    await playgroundFrame(page).getByText('You said: Changed', { exact: true }).waitFor()
    expect(await playgroundFrame(page).locator('article', { hasText: 'Second' }).count()).toBe(0)
    expect(
      await traceOf(page)
        .getByRole('region', { name: /^Trace of/ })
        .count(),
    ).toBe(1)
    await page.reload()
    await playgroundFrame(page).getByRole('textbox').waitFor()
    await page.getByRole('button', { name: 'Test questions' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'First', exact: true }).click()
    await playgroundFrame(page).getByText('You said: First', { exact: true }).waitFor()
    expect(complaints).toEqual([])
  })

  test('keeps its chat when the agent is created and saved', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/agents/new?template=support&try=true')
    await askInPlayground(page, 'Before the agent exists')
    await playgroundFrame(page).getByText('You said: Before the agent exists', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Saved as version 1').waitFor()
    await playgroundFrame(page).getByText('You said: Before the agent exists', { exact: true }).waitFor()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Another name')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved as version 2').waitFor()
    await playgroundFrame(page).getByText('You said: Before the agent exists', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Show the trace' }).click()
    await traceOf(page).getByRole('region', { name: 'Trace of “Before the agent exists”' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('can stop an answer, and shows why another one failed', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}?view=try`, { width: 1440 })
    await askInPlayground(page, '[[tokens:900]] [[delay:100]]')
    await playgroundFrame(page).getByRole('button', { name: /stop/i }).click()
    const [stopped, failed] = ['Trace of “[[tokens:900]] [[delay:100]]”', 'Trace of “[[error:400]]”'].map(
      (name) => traceOf(page).getByRole('region', { name }),
    ) as [Locator, Locator]
    await stopped.getByText('Stopped', { exact: true }).waitFor()
    await askInPlayground(page, '[[error:400]]')
    await failed.getByRole('alert').waitFor()
    await failed.getByText('Failed', { exact: true }).waitFor()
    await failed.getByText(/^Failed: .*status_4xx/).waitFor()
  })

  test('fits on a phone screen', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}`, {
      width: 390,
      height: 844,
    })
    await page.getByRole('textbox', { name: 'Name', exact: true }).waitFor()
    await saveScreenshot(page, 'editor-phone')
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
    await page.getByText('Try it', { exact: true }).click()
    await askInPlayground(page, 'Hello')
    await playgroundFrame(page).getByText('You said: Hello', { exact: true }).waitFor()
    await saveScreenshot(page, 'try-phone')
    expect(page.url()).toContain('view=try')
    await page.getByRole('button', { name: 'Show the trace' }).click()
    await traceOf(page).getByText('Route: mock/mock').waitFor()
    await saveScreenshot(page, 'try-phone-trace')
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
    expect(await listAxeFaults(page)).toEqual([])
    expect(complaints).toEqual([])
  })
})
