/** Tests the console's agent editor: saving, errors, sections, stored drafts and files. */
import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole, setTheme } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const definition = `name: Greeter
instructions: |
  Greet people.
tools:
  - name: weather
    description: Reports the weather
    inputSchema:
      type: object
`

const faulty = `name: Greeter
instructions: |
  Greet people.
temperature: 7
tools:
  - name: weather
  - name: "no spaces allowed"
    description: Reports the weather
embed:
  origins:
    - https://www.example.com/path
`

const nameField = (page: Page) => page.getByRole('textbox', { name: 'Name', exact: true }).first()

/** Returns the path of the focused field. */
const focusedPath = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute('data-path'))

/** Waits until the browser has stored the draft with `text`. */
async function waitForStoredDraft(page: Page, text: string): Promise<void> {
  await page.waitForFunction((part) => JSON.stringify({ ...localStorage }).includes(part), text)
}

const countStoredDrafts = (page: Page) =>
  page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('parley-draft:')).length)

describe('the save shortcut', () => {
  test('saves a change, and does nothing without changes', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}`)
    await nameField(page).press('Control+s')
    await nameField(page).fill('Ada')
    await nameField(page).press('Control+s')
    await page.getByText('Saved as version 2').waitFor()
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).body).toMatchObject({
      version: 2,
      definition: { name: 'Ada' },
    })
    expect(complaints).toEqual([])
  })

  test('moves the focus to the first error and does not save', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`)
    await nameField(page).fill('')
    await page.getByRole('region', { name: 'Errors' }).waitFor()
    await page.getByRole('textbox', { name: 'Tone' }).press('Control+s')
    await expect.poll(() => focusedPath(page)).toBe('name')
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).body.version).toBe(1)
  })
})

describe('the list of errors', () => {
  test('shows all errors of a definition and focuses their fields', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`, { width: 1440 })
    const text = page.getByRole('textbox', { name: 'Definition as YAML' })
    await text.fill(faulty)
    const errors = page.getByRole('region', { name: 'Errors' })
    await errors.getByText('3 errors').waitFor()
    await errors.getByRole('button', { name: /^Temperature: must be between 0 and 2/ }).click()
    await expect.poll(() => focusedPath(page)).toBe('temperature')
    await errors.getByRole('button', { name: /^tools\[1\].name: / }).click()
    await expect.poll(() => focusedPath(page)).toBe('tools[1].name')
    await errors.getByRole('button', { name: /^Allowed origins: must be an origin/ }).click()
    await expect.poll(() => focusedPath(page)).toBe('embed.origins')
    expect(await listAxeFaults(page)).toEqual([])
    await page.evaluate(() => window.scrollTo(0, 0))
    await saveScreenshot(page, 'editor-errors-1440-light')
    await setTheme(page, 'dark')
    await saveScreenshot(page, 'editor-errors-1440-dark')
    await page.setViewportSize({ width: 390, height: 844 })
    await saveScreenshot(page, 'editor-errors-390-dark')
  })

  test('includes invalid JSON in a tool field, which is not yet part of the definition', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`)
    await page.getByRole('button', { name: 'weather Reports the weather' }).click()
    await page.getByRole('textbox', { name: 'Arguments (JSON Schema)' }).fill('{"type":')
    await nameField(page).fill('Ada')
    await page.getByRole('region', { name: 'Errors' }).getByText('Enter valid JSON.').waitFor()
    expect(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true)
  })
})

describe('the list of sections', () => {
  test('marks the visible section, and is not shown on phones', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`, { width: 1440 })
    const sections = page.getByRole('navigation', { name: 'Sections' })
    const current = sections.locator('[aria-current=location]')
    await current.getByText('Basics').waitFor()
    await page.mouse.move(500, 500)
    await page.mouse.wheel(0, 5_000)
    await current.getByText('Conversations').waitFor()
    await sections.getByRole('button', { name: 'Behavior' }).click()
    await current.getByText('Behavior').waitFor()
    await page.getByRole('textbox', { name: 'Tone' }).click({ trial: true })
    await saveScreenshot(page, 'editor-sections-1440-light')
    await page.setViewportSize({ width: 390, height: 844 })
    await sections.waitFor({ state: 'detached' })
    await page.evaluate(() => window.scrollTo(0, 0))
    await saveScreenshot(page, 'editor-390-light')
    expect(await listAxeFaults(page)).toEqual([])
  })
})

describe('an unsaved draft', () => {
  test('is offered after a reload and removed when it is saved', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`, { width: 1440 })
    const offer = page.getByRole('region', { name: 'Unsaved changes' })
    page.on('dialog', (dialog) => void dialog.accept())
    await nameField(page).fill('Ada')
    await waitForStoredDraft(page, 'name: Ada')
    await page.reload()
    await offer.waitFor()
    expect(await nameField(page).inputValue()).toBe('Greeter')
    expect(await listAxeFaults(page)).toEqual([])
    await saveScreenshot(page, 'editor-draft-1440-light')
    await offer.getByRole('button', { name: 'Restore unsaved changes' }).click()
    expect(await nameField(page).inputValue()).toBe('Ada')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved as version 2').waitFor()
    await expect.poll(() => countStoredDrafts(page)).toBe(0)
  })

  test('is removed when the user discards it', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`)
    const offer = page.getByRole('region', { name: 'Unsaved changes' })
    page.on('dialog', (dialog) => void dialog.accept())
    await nameField(page).fill('Ada')
    await waitForStoredDraft(page, 'name: Ada')
    await page.reload()
    await offer.getByRole('button', { name: 'Discard' }).click()
    await offer.waitFor({ state: 'detached' })
    expect(await countStoredDrafts(page)).toBe(0)
  })

  test('shows a conflict on save if the agent has been saved elsewhere in the meantime', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`)
    page.on('dialog', (dialog) => void dialog.accept())
    await nameField(page).fill('Ada')
    await waitForStoredDraft(page, 'name: Ada')
    const headers = { 'Content-Type': 'application/yaml' }
    await app.call('PUT', `/v1/agents/${agent_id}`, { body: 'name: Theirs\ninstructions: Wave.\n', headers })
    await page.reload()
    await page.getByRole('button', { name: 'Restore unsaved changes' }).click()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('dialog', { name: 'This agent has a newer version' }).waitFor()
  })

  test('is not stored while it contains an API key', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`)
    await nameField(page).fill('Ada')
    await waitForStoredDraft(page, 'name: Ada')
    await page.getByRole('textbox', { name: 'Tone' }).fill(`svc_${'a'.repeat(61)}`)
    await expect.poll(() => countStoredDrafts(page)).toBe(0)
  })
})

describe('the history', () => {
  test('shows the note that the user writes when saving a version', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const { page, complaints } = await openConsole(app, browser, `/agents/${id}`, { width: 1440 })
    const note = page.getByRole('textbox', { name: 'Note for this version' })
    const name = page.getByRole('textbox', { name: 'Name', exact: true })
    await name.fill('Concierge')
    await note.fill('New name')
    await expectView(page, 'version-note')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved as version 2').waitFor()
    await name.fill('Porter')
    expect(await note.inputValue()).toBe('')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved as version 3').waitFor()
    await page.getByRole('link', { name: 'History' }).click()
    await page.getByRole('button', { name: /Version 2/ }).click()
    await page.getByRole('region', { name: 'Version 2' }).getByText('New name').waitFor()
    await expectView(page, 'history-note')
    expect(complaints).toEqual([])
  })

  test('shows authors, labels the live and previous versions, and shows the first version in full', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`, { width: 1440 })
    await nameField(page).fill('Ada')
    await nameField(page).press('Control+s')
    await page.getByText('Saved as version 2').waitFor()
    const { body } = await app.call('GET', `/v1/agents/${agent_id}/versions`)
    await page.getByRole('link', { name: 'History' }).click()
    await page.getByRole('button', { name: /Version 2 Live/ }).waitFor()
    const [live, first] = body.data
    expect(first.author).toBe(app.key.slice(4, 16))
    await page
      .getByRole('button', { name: /Version 1/ })
      .getByText('with the key first')
      .waitFor()
    await page
      .getByRole('button', { name: /Version 2/ })
      .getByText(`by ${live.author}`)
      .waitFor()
    await page.getByRole('button', { name: /Version 1 Previous/ }).click()
    await page.getByRole('region', { name: 'Definition of version 1' }).getByText('Greet people.').waitFor()
    expect(await listAxeFaults(page)).toEqual([])
    await saveScreenshot(page, 'history-first-1440-light')
  })
})

describe('the agent editor', () => {
  test('duplicates an agent with the same definition and a different name', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`)
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Duplicate agent' }).click()
    await page.getByRole('button', { name: 'Duplicate', exact: true }).click()
    await page.getByRole('heading', { name: 'Greeter (copy)', level: 1 }).waitFor()
    const { body } = await app.call('GET', '/v1/agents')
    expect(body.data.map(({ name }: { name: string }) => name).sort()).toEqual(['Greeter', 'Greeter (copy)'])
  })

  test('exports the saved definition as a YAML file', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(definition)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`)
    await page.getByRole('button', { name: 'More actions' }).click()
    const downloading = page.waitForEvent('download')
    await page.getByRole('menuitem', { name: 'Export YAML' }).click()
    const download = await downloading
    expect(download.suggestedFilename()).toBe('greeter.yaml')
    expect(await readFile(await download.path(), 'utf8')).toBe(definition)
  })

  test('creates an agent from a file that the user chooses', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/agents/new', { width: 1440 })
    const input = page.getByLabel('File to import')
    await input.setInputFiles({ name: 'picture.png', mimeType: 'image/png', buffer: Buffer.from('x') })
    await page.getByRole('alert').getByText('picture.png: choose a .yaml, .yml or .md file.').waitFor()
    expect(await listAxeFaults(page)).toEqual([])
    await saveScreenshot(page, 'import-1440-light')
    await input.setInputFiles({
      name: 'a.yaml',
      mimeType: 'application/yaml',
      buffer: Buffer.from(definition),
    })
    await page.getByRole('heading', { name: 'New agent: a.yaml' }).waitFor()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'Greeter', level: 1 }).waitFor()
    expect((await app.call('GET', '/v1/agents')).body.data).toHaveLength(1)
    expect(complaints).toEqual([])
  })

  test('opens a file that the user drops', async () => {
    const app = await startApp()
    const { page } = await openConsole(app, browser, '/agents/new')
    const dataTransfer = await page.evaluateHandle((text) => {
      const transfer = new DataTransfer()
      transfer.items.add(new File([text], 'dropped.yaml'))
      return transfer
    }, definition)
    await page.getByText('Drop a YAML or Markdown file here').dispatchEvent('drop', { dataTransfer })
    await page.getByRole('heading', { name: 'New agent: dropped.yaml' }).waitFor()
    expect(await nameField(page).inputValue()).toBe('Greeter')
  })
})
