/** Tests an agent's embed page, model policy page and visitor secret in the console. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'
import { startPages } from '../support/page-server.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import { allowLoopback } from '../support/webhook-receiver.ts'

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

/** Returns the preview's frame, which contains a page with the widget. */
const previewOf = (page: Page) => page.locator('.preview-stage iframe').contentFrame()
/** Opens the chat; scrolls first, because the launcher is at the bottom of the preview. */
async function openChat(page: Page): Promise<void> {
  await page.locator('.preview-stage').evaluate((stage) => stage.scrollIntoView({ block: 'end' }))
  await previewOf(page).getByRole('button', { name: 'Open chat' }).click()
}

const chatOf = (page: Page) => previewOf(page).locator('parley-chat iframe').contentFrame()

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
      await code.getByText(`src="${app.url}/embed/parley.js?key=${agent_key.slice(0, 21)}"`).waitFor()
      await openChat(page)
      const chat = chatOf(page)
      await chat.getByText('Hello there!').waitFor()
      await chat.getByRole('textbox').fill('Hi')
      await page.keyboard.press('Enter')
      await chat.getByText('You said: Hi', { exact: true }).waitFor()
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
    await openChat(page)
    const form = page.getByRole('region', { name: 'Appearance' })
    await form.getByText('Dark', { exact: true }).first().click()
    await form.getByRole('button', { name: 'Text' }).click()
    await form.getByRole('textbox', { name: 'Title' }).fill('Our "guide"')
    const code = page.getByRole('region', { name: 'Code' })
    await code.getByText('data-title="Our &quot;guide&quot;"').waitFor()
    await code.getByText('data-theme="dark"').waitFor()
    await chatOf(page).getByText('Our "guide"').waitFor()
    await form.getByRole('textbox', { name: 'Title' }).fill('')
    await chatOf(page).getByRole('heading', { name: 'Guide' }).waitFor()
    await page.getByRole('link', { name: 'History' }).click()
    await page.getByRole('button', { name: 'Leave' }).click()
    await page.getByRole('heading', { name: 'Version 1 (first)' }).waitFor()
    expect(await page.locator('iframe').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test.each([
    ['light', 1440],
    ['dark', 390],
  ] as const)(
    'previews the theme, warns about low contrast, and saves it to the agent (%s, %i px)',
    async (colorScheme, width) => {
      const app = await startApp()
      const { agent_id } = await app.createAgent(`${embedded}  # Kept\n`)
      const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/embed`, {
        colorScheme,
        width,
      })
      const form = page.getByRole('region', { name: 'Appearance' })
      const color = form.getByRole('textbox', { name: 'Accent color' })
      const save = form.getByRole('button', { name: 'Save to the agent' })
      await previewOf(page).getByRole('button', { name: 'Open chat' }).waitFor()
      await color.fill('#12')
      await form.getByText('must be a color such as').waitFor()
      expect(await save.isDisabled()).toBe(true)
      await color.fill('#facc15')
      await form.getByText('Links: your color has a contrast of 1.3:1 in the light scheme').waitFor()
      await page.keyboard.press('Escape')
      await form.getByRole('button', { name: 'Launcher' }).press('Enter')
      await form.getByRole('textbox', { name: 'Label' }).fill('Ask us')
      await form.getByRole('textbox', { name: 'Teaser', exact: true }).fill('Any questions?')
      await previewOf(page).getByText('Any questions?').waitFor()
      const launcher = previewOf(page).getByRole('button', { name: 'Ask us: Open chat' })
      await expect
        .poll(() => launcher.evaluate((element) => getComputedStyle(element).backgroundColor))
        .toBe('rgb(250, 204, 21)')
      await saveScreenshot(page, `embed-theme-${colorScheme}`)
      expect(await listAxeFaults(page)).toEqual([])
      await save.click()
      await form.getByText('Saved as version 2').waitFor()
      expect(await page.getByRole('region', { name: 'Code' }).getByText('data-launcher-label').count()).toBe(
        0,
      )
      const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
      expect(body.yaml).toContain('# Kept')
      expect(body.yaml).toMatch(
        /theme:\n {4}primaryColor: "#facc15"\n {4}launcherLabel: Ask us\n {4}teaser: Any/,
      )
      await page.reload()
      expect(await color.inputValue()).toBe('#facc15')
      await launcher.waitFor()
      await form.getByRole('button', { name: 'Reset to defaults' }).click()
      await previewOf(page).getByRole('button', { name: 'Open chat', exact: true }).waitFor()
      await page.getByText('data-launcher-label=""').waitFor()
      expect(complaints).toEqual([])
    },
  )

  test("shows the widget in position on a sample page, at phone width, and on the user's own page", async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(embedded)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/embed`, { width: 1440 })
    const launcher = previewOf(page).getByRole('button', { name: 'Open chat' })
    await launcher.waitFor()
    const stage = async () => page.locator('.preview-stage iframe').boundingBox()
    const distances = async () => {
      const [box, outer] = [await launcher.boundingBox(), await stage()]
      if (box === null || outer === null) throw new Error('The preview is not visible.')
      return [outer.x + outer.width - box.x - box.width, outer.y + outer.height - box.y - box.height]
    }
    expect(await distances()).toEqual([20, 20])
    await page.getByText('Phone', { exact: true }).click()
    await expect.poll(async () => (await stage())?.width).toBe(390)
    await page.getByText('Desktop', { exact: true }).click()
    const address = page.getByRole('textbox', { name: 'Page behind the widget' })
    await address.fill('mailto:somebody')
    await page.getByText('Enter a page URL, such as').waitFor()
    await address.fill(`${app.url}/docs`)
    await page.getByText('does not allow other sites to show it').waitFor()
    await previewOf(page).locator(`iframe[src="${app.url}/docs"][sandbox]`).waitFor()
    await address.fill('')
    await previewOf(page).locator('.hero').waitFor()
    expect(complaints.filter((line) => !line.includes('frame-ancestors'))).toEqual([])
  })

  test('reports that a page forbids framing or cannot be reached, and offers the sample page', async () => {
    const pages = await startPages((request, response) => {
      if (request.url === '/gone') return void request.socket.destroy()
      if (request.url === '/forbids') response.setHeader('X-Frame-Options', 'DENY')
      response.setHeader('Content-Type', 'text/html')
      response.writeHead(request.url === '/missing' ? 404 : 200).end('<p>Our shop</p>')
    })
    const { host } = new URL(pages)
    const app = await startApp(allowLoopback)
    const { agent_id } = await app.createAgent(embedded)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/embed`, { width: 1440 })
    const address = page.getByRole('textbox', { name: 'Page behind the widget' })
    const notice = page.getByRole('region', { name: 'Preview' }).getByRole('status')
    const shop = previewOf(page).locator('.page > iframe')
    await address.fill(`${pages}/shop`)
    await shop.contentFrame().getByText('Our shop').waitFor()
    expect(await notice.innerText()).toBe('')

    await address.fill(`${pages}/forbids`)
    await notice.getByText(`${host} does not allow other sites to show it (X-Frame-Options: DENY).`).waitFor()
    await previewOf(page).locator('.hero').waitFor()
    expect(await shop.count()).toBe(0)
    await saveScreenshot(page, 'embed-forbids-frames')
    expect(await listAxeFaults(page)).toEqual([])
    await notice.getByRole('button', { name: 'Use the sample page' }).click()
    expect(await address.inputValue()).toBe('')
    await expect.poll(() => notice.innerText()).toBe('')

    await address.fill(`${pages}/gone`)
    await notice.getByText(`${host} cannot be reached.`).waitFor()
    await previewOf(page).locator('.hero').waitFor()
    await address.fill(`${pages}/missing`)
    await notice.getByText(`${host} answered with status 404`).waitFor()
    await shop.contentFrame().getByText('Our shop').waitFor()
    expect(complaints.filter((line) => !line.includes(pages) && !line.includes('404'))).toEqual([])
  })

  test('saves the allowed image hosts to the agent, and names an invalid host', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(embedded)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/embed`, { width: 1440 })
    const form = page.getByRole('region', { name: 'Appearance' })
    await form.getByRole('button', { name: 'Images' }).click()
    const hosts = form.getByRole('textbox', { name: 'Image hosts' })
    await hosts.fill('images.example.com\nhttps://cdn.example.com')
    await form.getByText('https://cdn.example.com: must be a host name such as images.example.org').waitFor()
    await form.getByRole('button', { name: 'Images 1 error' }).waitFor()
    const save = form.getByRole('button', { name: 'Save to the agent' })
    expect(await save.isDisabled()).toBe(true)
    await hosts.fill('images.example.com\n*.example.net\n')
    await expect.poll(() => save.isEnabled()).toBe(true)
    await saveScreenshot(page, 'embed-image-hosts')
    expect(await listAxeFaults(page)).toEqual([])
    await save.click()
    await form.getByText('Saved as version 2').waitFor()
    const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect(parse(body.yaml).embed.imageHosts).toEqual(['images.example.com', '*.example.net'])
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

describe('the visitor secret', () => {
  test('can be created and rotated, is shown once, and the page shows how long the previous secret remains valid', async () => {
    const app = await startApp()
    const { agent_id: agentId } = await app.createAgent(embedded)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agentId}/embed`)
    const section = page.getByRole('region', { name: 'Visitor identity' })
    await section.getByText('This agent has no visitor secret.').waitFor()
    await section.getByRole('button', { name: 'Create visitor secret' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Create visitor secret' }).click()
    const first = await dialog.getByText(/^vsk_[\w-]{43}$/).innerText()
    expect(await listAxeFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'I have copied it' }).click()
    await section.getByText(/^Secret created /).waitFor()
    expect(await page.getByText(first).count()).toBe(0)

    await section.getByRole('button', { name: 'Rotate visitor secret' }).click()
    await dialog.getByLabel('Current secret').selectOption('3600')
    await dialog.getByRole('button', { name: 'Rotate visitor secret' }).click()
    const second = await dialog.getByText(/^vsk_[\w-]{43}$/).innerText()
    expect(second).not.toBe(first)
    await dialog.getByRole('button', { name: 'I have copied it' }).click()
    await section.getByText(/The previous secret is valid until /).waitFor()
    const { body } = await app.call('GET', `/v1/agents/${agentId}/visitor-secret`)
    expect(body.previous_valid_until - body.created_at).toBe(3600)
    expect(complaints).toEqual([])
    await page.close()
  })
})
