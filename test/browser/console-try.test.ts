/** Tests the playground next to the agent editor. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole, saveScreenshot } from '../support/console-ui.ts'
import { tool } from '../support/tools.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const withTools = 'name: Guide\ninstructions: Help.\ntools:\n  - weather\n  - book\n'

describe('the playground', () => {
  test('runs the draft and shows tool calls, token counts, timings and the model that responded', async () => {
    const app = await startApp({}, { tools: { weather: tool(() => ({ degrees: 21 })) } })
    const { agent_id } = await app.createAgent('name: Guide\ninstructions: Help.\n')
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}?try=true`)
    const text = page.getByRole('textbox', { name: 'Name', exact: true })
    await text.fill('Guide of the draft')
    await page.getByRole('button', { name: 'Add tool' }).click()
    await page.getByRole('textbox', { name: 'Name' }).nth(1).fill('weather')
    await page.getByRole('textbox', { name: 'Message' }).fill('[[tool:weather {"city":"Oslo"}]]')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByLabel('Arguments of weather').getByText('Oslo').waitFor()
    await page.getByLabel('Result of weather').getByText('21').waitFor()
    const facts = page.getByRole('group', { name: 'Answer details' })
    await facts.getByText(/mock\/mock · \d+ \+ \d+ tokens · first token .* · .* total/).waitFor()
    await saveScreenshot(page, 'try-light')
    expect(await listAxeFaults(page)).toEqual([])
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).body.version).toBe(1)
    expect(complaints).toEqual([])
  })

  test('lets the user enter the results of client-side tools', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(withTools)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}?try=true`)
    await page.getByRole('textbox', { name: 'Message' }).fill('[[tool:book {"day":"Friday"}]]')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'Result of book' }).fill('{"booked":true}')
    await page.getByRole('button', { name: 'Send result' }).click()
    await page.locator('.playground-text', { hasText: 'booked' }).waitFor()
  })

  test('sends one message to the draft and to the saved version for comparison', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent('name: Guide\ninstructions: Help.\n')
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}?try=true`, {
      width: 1720,
      colorScheme: 'dark',
    })
    await page.getByRole('button', { name: 'Add tool' }).click()
    await page.getByRole('switch', { name: 'Compare with saved version' }).check({ force: true })
    await page.getByRole('textbox', { name: 'Message' }).fill('[[tool:tool_1 {}]]')
    await page.keyboard.press('Enter')
    await page.getByText('Saved version', { exact: true }).waitFor()
    await page.getByRole('textbox', { name: 'Result of tool_1' }).waitFor()
    await page.locator('.playground-text').waitFor()
    await saveScreenshot(page, 'compare-dark')
    expect(await listAxeFaults(page)).toEqual([])
    expect(complaints).toEqual([])
  })

  test('can be stopped and reports failures', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent('name: Guide\ninstructions: Help.\n')
    const { page } = await openConsole(app, browser, `/agents/${agent_id}?try=true`)
    const message = page.getByRole('textbox', { name: 'Message' })
    await message.fill('[[tokens:900]] [[delay:100]]')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('stopped').waitFor()
    await message.fill('[[error:400]]')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('alert').waitFor()
  })

  test('fills the screen on a phone', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(withTools)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}`, {
      width: 390,
      height: 844,
    })
    await page.getByRole('textbox', { name: 'Name', exact: true }).waitFor()
    await saveScreenshot(page, 'editor-phone')
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
    await page.getByText('Try it', { exact: true }).click()
    await page.getByRole('textbox', { name: 'Message' }).fill('Hello')
    await page.keyboard.press('Enter')
    await page.getByText('You said: Hello').waitFor()
    await saveScreenshot(page, 'try-phone')
    expect(page.url()).toContain('view=try')
    expect(await listAxeFaults(page)).toEqual([])
    expect(complaints).toEqual([])
  })
})
