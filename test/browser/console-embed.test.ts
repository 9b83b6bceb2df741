/** Tests an agent's embed page and model policy page in the console. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole, saveScreenshot } from '../support/console-ui.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const embedded = `name: Guide
instructions: Help.
embed:
  title: Ask us
  greeting: Hello there!
  origins:
    - https://*.example.com
`

describe('the embed page', () => {
  test.each(['light', 'dark'] as const)(
    'shows code with the real key and a working widget in the %s theme',
    async (colorScheme) => {
      const app = await startApp()
      const { agent_id, agent_key } = await app.createAgent(embedded)
      const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/embed`, {
        colorScheme,
      })
      const code = page.getByRole('region', { name: 'Code' })
      await code.getByText(`data-api-key="${agent_key}"`).waitFor()
      await code.getByText(`src="${app.url}/embed/parley.js"`).waitFor()
      const frame = page.frameLocator('iframe')
      await frame.getByText('Hello there!').waitFor()
      await frame.getByRole('textbox').fill('Hi')
      await page.keyboard.press('Enter')
      await frame.getByText('You said: Hi').waitFor()
      await saveScreenshot(page, `embed-${colorScheme}`)
      expect(await listAxeFaults(page)).toEqual([])
      await page.getByRole('tab', { name: 'API' }).click()
      await code.getByText(`Bearer ${agent_key}`).waitFor()
      expect(page.url()).toContain('as=api')
      expect(complaints).toEqual([])
    },
  )

  test('updates the code snippet and the preview when an option changes', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(embedded)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/embed`)
    await page.frameLocator('iframe').getByRole('textbox').waitFor()
    const preview = page.getByRole('region', { name: 'Preview' })
    await preview.getByText('Dark', { exact: true }).click()
    await preview.getByRole('textbox', { name: 'Title' }).fill('Our "guide"')
    const code = page.getByRole('region', { name: 'Code' })
    await code.getByText('data-title="Our &quot;guide&quot;"').waitFor()
    await code.getByText('data-theme="dark"').waitFor()
    await page.frameLocator('iframe').getByText('Our "guide"').waitFor()
    await preview.getByRole('switch', { name: 'Show as a floating button' }).check({ force: true })
    await page.getByText('The chat button is at the bottom of this window').waitFor()
    await page.getByRole('button', { name: 'Open chat' }).click()
    await page.frameLocator('iframe').getByRole('textbox').waitFor()
    await page.getByRole('link', { name: 'History' }).click()
    await page.getByRole('heading', { name: 'Version 1 (first)' }).waitFor()
    expect(await page.locator('iframe').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('reports whether visitors see the widget at a given page URL', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(embedded)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}/embed`)
    const address = page.getByRole('textbox', { name: 'Check a page URL' })
    await address.fill('shop.example.com/cart')
    await page.getByText('The list includes https://*.example.com.').waitFor()
    await page.getByText('Greeting: Hello there!').waitFor()
    for (const other of ['https://example.com', 'http://shop.example.com', 'https://shop.example.com:8443']) {
      await address.fill(other)
      await page.getByText('The chat is not shown').waitFor()
    }
    await address.fill(app.url)
    await page.getByText('The origin of this server is always allowed.').waitFor()
    await address.fill('mailto:somebody')
    await page.getByText('Enter a page URL, such as').waitFor()
  })
})

describe('the model policy', () => {
  test('lets the user select from the available models and saves the selection', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent('name: Guide\ninstructions: Help.\nmodel: mock\n')
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/models`)
    await page.getByText('the definition specifies it').waitFor()
    await page
      .getByRole('combobox', { name: 'Default model' })
      .or(page.getByLabel('Default model'))
      .first()
      .click()
    await page.getByRole('option', { name: 'mock/mock', exact: true }).click()
    await page.getByLabel('Daily budget').fill('5000')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('the policy sets it as the default').waitFor()
    const { body } = await app.call('GET', `/v1/agents/${agent_id}/model-policy`)
    expect([body.default_model, body.budget.day]).toEqual([{ provider: 'mock', model: 'mock' }, 5000])
    await saveScreenshot(page, 'policy-light')
    expect(await listAxeFaults(page)).toEqual([])
    expect(complaints).toEqual([])
  })
})
