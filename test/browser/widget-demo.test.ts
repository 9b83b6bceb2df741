/** Tests the /demo page and the widget examples. */

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { build, type Rolldown } from 'vite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { openConsole } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import { openWidgetHarness, type WidgetHarness } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const repository = join(import.meta.dirname, '../..')
let harness: WidgetHarness
beforeAll(async () => {
  harness = await openWidgetHarness()
})
afterAll(() => harness?.close())

async function openPage(): Promise<{ page: Page; complaints: string[] }> {
  const page = await harness.browser.newPage({ viewport: { width: 1100, height: 800 } })
  onTestFinished(() => page.close())
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  return { page, complaints }
}

const say = async (page: Page, text: string) => {
  const field = page.frameLocator('parley-chat iframe').getByRole('textbox')
  await field.fill(text)
  await field.press('Enter')
}

describe('the /demo page', () => {
  test('reads the key from its URL, keeps it after a reload and shows the widget', async () => {
    const { page, complaints } = await openPage()
    await page.goto(`${harness.app.url}/demo?key=${harness.agent.agent_key}`)
    await page.locator('parley-chat .launcher').waitFor()
    expect(page.url()).toBe(`${harness.app.url}/demo`)
    await page.reload()
    await page.locator('parley-chat .launcher').waitFor()
    await page.locator('.events').getByText('parley-chat-ready').waitFor()
    expect(complaints).toEqual([])
  })

  test('asks for an agent key and does not accept a parent key', async () => {
    const { page } = await openPage()
    await page.goto(`${harness.app.url}/demo`)
    await page.getByLabel('Agent key').fill(harness.app.key)
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByRole('alert').getByText('Keep parent keys (svc_…) on your server').waitFor()
    expect(await page.locator('parley-chat').count()).toBe(0)
    await page.getByLabel('Agent key').fill(harness.agent.agent_key)
    await page.getByRole('button', { name: 'Start' }).click()
    await page.locator('parley-chat .launcher').waitFor()
  })

  test('logs each message and each change of who answers', async () => {
    const { page } = await openPage()
    const yaml = 'name: Shop\ninstructions: Help.\nconversations: { keep: 30d, handover: {} }\n'
    const { agent_key } = await harness.app.createAgent(yaml)
    await page.goto(`${harness.app.url}/demo?key=${agent_key}`)
    await page.locator('parley-chat .launcher').click()
    await say(page, 'Hello there.')
    const events = page.locator('.events')
    await events.getByText('{"role":"user"}').waitFor()
    await events.getByText('{"role":"assistant","status":"done"}').waitFor()
    const frame = page.frameLocator('parley-chat iframe')
    await frame.getByRole('button', { name: 'More actions' }).click()
    await frame.getByRole('menuitem', { name: 'Talk to a person' }).click()
    await events.getByText('{"mode":"waiting"}').waitFor()
  })

  test('shows the theme of the agent, and form options override it', async () => {
    const { page, complaints } = await openPage()
    const theme = "primaryColor: '#0f766e', headerStyle: solid, position: bottom-left, colorScheme: dark"
    const { agent_key } = await harness.app.createAgent(
      `name: Teal\ninstructions: Help.\nembed: { theme: { ${theme} } }\n`,
    )
    await page.goto(`${harness.app.url}/demo?key=${agent_key}`)
    const launcher = page.locator('parley-chat .launcher')
    const color = (locator: Locator) =>
      locator.evaluate((element) => getComputedStyle(element).backgroundColor)
    await expect.poll(() => color(launcher)).toBe('rgb(15, 118, 110)')
    await launcher.click()
    const frame = page.frameLocator('parley-chat iframe')
    await frame.getByRole('textbox').waitFor()
    expect(await color(frame.locator('header'))).toBe('rgb(15, 118, 110)')
    expect(await frame.locator('html').getAttribute('data-theme')).toBe('dark')
    await expect.poll(async () => (await page.locator('parley-chat .window').boundingBox())?.x).toBe(20)
    expect(await frame.getByText('Welcome').count()).toBe(0)
    await page.getByLabel('primaryColor').fill('#b91c1c')
    await page.locator('select[name=theme]').selectOption('light')
    await expect.poll(() => color(frame.locator('header'))).toBe('rgb(185, 28, 28)')
    expect(await frame.locator('html').getAttribute('data-theme')).toBe('light')
    await page.getByLabel('primaryColor').fill('')
    await page.getByLabel('headerStyle').selectOption('gradient')
    await expect.poll(() => frame.locator('html').getAttribute('data-header')).toBe('gradient')
    expect(await color(launcher)).toBe('rgb(15, 118, 110)')
    await page.getByText('Answers come from the built-in mock model').waitFor()
    await saveScreenshot(page, 'demo-theme')
    expect(complaints).toEqual([])
  })

  test('applies form options, runs tools and receives text from the widget', async () => {
    const { page, complaints } = await openPage()
    await page.goto(`${harness.app.url}/demo?key=${harness.agent.agent_key}`)
    await page.locator('parley-chat .launcher').click()
    await page.getByLabel('position').selectOption('bottom-left')
    await expect.poll(async () => (await page.locator('parley-chat .window').boundingBox())?.x).toBe(20)
    await page.getByLabel('position').selectOption('bottom-right')
    const frame = page.frameLocator('parley-chat iframe')
    await say(page, '[[tool:postMessage_set_color {"color":"teal"}]]')
    await frame.getByText('The tool answered: {"color":"teal"}').waitFor()
    expect(await page.locator('h1').evaluate(({ style }) => style.color)).toBe('teal')
    await say(page, '[[tool:postMessage_clear_note {}]]')
    await frame.getByRole('button', { name: 'Allow once' }).click()
    await expect.poll(() => page.getByLabel('Note', { exact: true }).inputValue()).toBe('')
    await say(page, 'for the note')
    const reply = frame.locator('article.reply').filter({ hasText: 'You said: for the note' })
    await reply.getByRole('button', { name: /insert/i }).click()
    await expect
      .poll(() => page.getByLabel('Note', { exact: true }).inputValue())
      .toBe('You said: for the note')
    await reply.getByRole('button', { name: /share/i }).click()
    await page.locator('section pre').getByText('You said: for the note').waitFor()
    expect(complaints).toEqual([])
  })
})

test("the /demo page offers the console user's agents instead of asking for a key", async () => {
  const { app, browser } = harness
  const other = await app.createAgent(
    'name: Other guide\ninstructions: Help.\nembed:\n  greeting: I am other.\n',
  )
  const { page, complaints } = await openConsole(app, browser)
  await page.goto(`${app.url}/demo`)
  await page.locator('parley-chat .launcher').waitFor()
  await page.getByLabel('Choose an agent').selectOption({ label: 'Other guide' })
  expect(await page.getByLabel('Choose an agent').inputValue()).toBe(other.agent_key)
  expect(await page.getByLabel('Agent key').isVisible()).toBe(false)
  await page.locator('parley-chat .launcher').click()
  await page.frameLocator('parley-chat iframe').getByText('I am other.').waitFor()
  await saveScreenshot(page, 'demo-session')
  expect(await listAxeFaults(page)).toEqual([])
  await page.goto(`${app.url}/demo?key=${harness.agent.agent_key}`)
  await page.getByLabel('Choose an agent').waitFor()
  expect(await page.getByLabel('Choose an agent').inputValue()).toBe(harness.agent.agent_key)
  expect(complaints).toEqual([])
})

/** Reads an example file and replaces its placeholder with the test server's URL. */
const read = async (path: string) =>
  (await readFile(join(repository, path), 'utf8')).replaceAll('http://127.0.0.1:3000', harness.app.url)

/** Opens the example, sends a message and checks the widget's reply. */
async function tryExample(html: string): Promise<void> {
  const { page, launcher, complaints } = await harness.open({
    html,
    query: `?key=${harness.agent.agent_key}`,
  })
  onTestFinished(() => page.close())
  await launcher.waitFor()
  await page.getByRole('button', { name: 'Ask the concierge' }).click()
  await say(page, '[[tool:postMessage_show_room {"room":"Heron"}]]')
  await page.getByText('Selected room: Heron').waitFor()
  expect(complaints).toEqual([])
}

describe('the widget example', () => {
  test("opens from a button on a plain HTML page and calls one of the page's tools", async () => {
    await tryExample(await read('examples/html/index.html'))
  })

  test("opens from a button on a React page and calls one of the page's tools", async () => {
    const { output } = (await build({
      root: join(repository, 'examples/react'),
      configFile: false,
      logLevel: 'error',
      resolve: { alias: { 'parley/react': join(repository, 'dist/widget/react.js') } },
      build: {
        write: false,
        rolldownOptions: {
          input: join(repository, 'examples/react/main.tsx'),
          output: { format: 'iife', codeSplitting: false },
          onLog: () => {},
        },
      },
    })) as Rolldown.RolldownOutput
    const script = output[0].code
      .replaceAll('http://127.0.0.1:3000', harness.app.url)
      .replaceAll('</script', '<\\/script')
    const html = await read('examples/react/index.html')
    await tryExample(
      html.replace('<script type="module" src="main.tsx"></script>', () => `<script>${script}</script>`),
    )
  })
})
