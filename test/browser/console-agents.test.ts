/** Tests creating, editing and deleting an agent in the console, with the form and with the text editor. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { playgroundFrame } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const commented = `# Greets visitors.
name: Greeter   # shown to people
instructions: |
  Greet people.
tools:
  - name: weather
    description: Reports the weather
    inputSchema:
      type: object
      properties:
        city:
          type: string
`

describe('the agent list', () => {
  test('shows the number of tools and the last use of each agent, and can be searched by name', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent(commented)
    await app.createAgent('name: Analyst\ninstructions: Count.\nmodel: mock\n')
    await app.stream({ messages: [{ role: 'user', content: 'hi' }] }, agent_key)
    const { page, complaints } = await openConsole(app, browser)
    const row = page.getByRole('row', { name: /Greeter/ })
    await row.getByText('1 tool').waitFor()
    await row.getByText('today').waitFor()
    await saveScreenshot(page, 'agents-light')
    await page.getByRole('textbox', { name: 'Search agents' }).fill('anal')
    await row.waitFor({ state: 'hidden' })
    expect(page.url()).toContain('q=anal')
    await page.reload()
    await page.getByRole('link', { name: 'Analyst' }).waitFor()
    expect(await row.count()).toBe(0)
    await page.getByRole('link', { name: 'Analyst' }).click()
    await page.getByRole('heading', { name: 'Analyst', level: 1 }).waitFor()
    expect(complaints).toEqual([])
  })
})

describe('the agent editor', () => {
  test('shows the next steps after an agent is created, until the user hides them', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/agents/new?template=support', {
      width: 1440,
    })
    await page.getByRole('button', { name: 'Create' }).click()
    const steps = page.getByRole('region', { name: 'Next steps' })
    await steps.getByRole('link', { name: 'Connect model' }).waitFor()
    await expectView(page, 'next-steps')
    await steps.getByRole('link', { name: 'Try the agent' }).click()
    await playgroundFrame(page).getByRole('textbox').waitFor()
    expect(await steps.getByRole('link', { name: 'Try the agent' }).count()).toBe(0)
    await steps.getByRole('link', { name: 'Embed the agent' }).click()
    await page.getByRole('button', { name: 'Copy Script' }).waitFor()
    await page.goBack()
    await steps.getByRole('link', { name: 'View agent key' }).click()
    await page.getByRole('tab', { name: 'Agent keys', selected: true }).waitFor()
    await page.goBack()
    await steps.getByRole('button', { name: 'Hide next steps' }).click()
    await steps.waitFor({ state: 'hidden' })
    await page.reload()
    await page.getByText('Saved as version 1').waitFor()
    expect(await steps.count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('creates an agent from a template and warns about unsaved changes', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/agents/new')
    await page.getByRole('heading', { name: 'New agent' }).waitFor()
    await saveScreenshot(page, 'templates-light')
    await page.getByRole('link', { name: /Customer support/ }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Helpdesk')
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('dialog', { name: 'Leave without saving?' }).waitFor()
    await page.getByRole('button', { name: 'Stay' }).click()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'Helpdesk', level: 1 }).waitFor()
    await page.getByText('Saved as version 1').waitFor()
    const { body } = await app.call('GET', '/v1/agents')
    expect(body.data[0]).toMatchObject({ name: 'Helpdesk' })
    expect(body.data[0].markdown).toContain('# What visitors see in the chat window.')
    expect(complaints).toEqual([])
  })

  test('keeps the form and the text in sync and preserves comments', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(commented)
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}`)
    const text = page.getByRole('textbox', { name: 'Definition as YAML' })
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Ada')
    await text.getByText('name: Ada   # shown to people').waitFor()
    await page.getByRole('textbox', { name: 'Tone' }).fill('warm')
    await text.getByText('tone: warm').waitFor()
    await text.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('\ntemperature: 0.25')
    await expect.poll(() => page.getByLabel('Temperature').inputValue()).toBe('0.25')
    await page.getByRole('button', { name: 'weather Reports the weather' }).click()
    await page.getByRole('textbox', { name: 'Description' }).fill('Reports the weather of a city')
    await text.getByText('description: Reports the weather of a city').waitFor()
    await saveScreenshot(page, 'editor-light')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved as version 2').waitFor()
    const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect(body.yaml).toBe(
      `${commented.replace('Greeter', 'Ada').replace('Reports the weather', 'Reports the weather of a city')}behavior:\n  tone: warm\n\ntemperature: 0.25`,
    )
    expect(complaints).toEqual([])
  })

  test('shows an error at the line and at the field and disables saving', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(commented)
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`, { colorScheme: 'dark' })
    await page
      .getByRole('spinbutton', { name: 'Temperature' })
      .or(page.getByLabel('Temperature'))
      .first()
      .fill('7')
    await page.getByRole('status').getByText('Line 13: temperature: must be between 0 and 2').waitFor()
    await page.locator('.mantine-InputWrapper-error', { hasText: 'must be between 0 and 2' }).waitFor()
    expect(await page.locator('.cm-lint-marker-error').count()).toBe(1)
    expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    await saveScreenshot(page, 'editor-fault-dark')
    expect(await listAxeFaults(page)).toEqual([])
  })

  test('suggests field names while the user types', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { page } = await openConsole(app, browser, `/agents/${agent_id}`)
    const text = page.getByRole('textbox', { name: 'Definition as YAML' })
    await text.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('emb')
    await page.getByRole('option', { name: /^embed/ }).click()
    await page.keyboard.press('Enter')
    await page.keyboard.type('  gree')
    await page.getByRole('option', { name: /^greeting/ }).waitFor()
  })

  test('reports a conflict on save and lets the user keep either version', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}`)
    const name = page.getByRole('textbox', { name: 'Name', exact: true })
    await name.fill('Mine')
    const headers = { 'Content-Type': 'application/yaml' }
    const theirs = { body: 'name: Theirs\ninstructions: Wave.\n', headers }
    await app.call('PUT', `/v1/agents/${agent_id}`, theirs)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog', { name: 'This agent has a newer version' }).waitFor()
    expect(await listAxeFaults(page)).toEqual([])
    await saveScreenshot(page, 'conflict-light')
    await page.getByRole('button', { name: 'Save my version' }).click()
    await page.getByText('Saved as version 3').waitFor()
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).body.definition.name).toBe('Mine')
    await name.fill('Mine again')
    await app.call('PUT', `/v1/agents/${agent_id}`, theirs)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Discard my changes' }).click()
    await page.getByText('Saved as version 4').waitFor()
    expect(await name.inputValue()).toBe('Theirs')
    expect(complaints.filter((line) => !line.includes('412'))).toEqual([])
  })
})

describe('the version history', () => {
  test("shows each version's changes and can restore an old version", async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(commented)
    const headers = { 'Content-Type': 'application/yaml' }
    await app.call('PUT', `/v1/agents/${agent_id}`, {
      body: commented.replace('Greet people', 'Wave'),
      headers,
    })
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/history`)
    await page.getByRole('heading', { name: 'Changes from version 1 to 2' }).waitFor()
    await page.locator('.cm-deletedChunk', { hasText: 'Greet people' }).waitFor()
    await saveScreenshot(page, 'history-light')
    expect(await listAxeFaults(page)).toEqual([])
    await page.getByRole('button', { name: /Version 1/ }).click()
    await page.getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('button', { name: /Version 3/ }).waitFor()
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).body.yaml).toBe(commented)
    expect(complaints).toEqual([])
  })
})

test('an agent that was deleted in the console can be restored with Undo or from the bin', async () => {
  const app = await startApp()
  const { agent_id, agent_key } = await app.createAgent()
  await app.createAgent('name: Other\ninstructions: Help.\n')
  const stateOf = async () => (await app.call('GET', `/v1/agents/${agent_id}`)).status
  const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}`)
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Delete agent' }).click()
  await page.getByText('Agent moved to the bin').waitFor()
  const row = page.getByRole('row', { name: /Greeter/ })
  await row.waitFor({ state: 'hidden' })
  expect(await stateOf()).toBe(404)
  expect((await app.call('GET', '/v1/keys/validate', { key: agent_key })).status).toBe(401)
  await page.getByRole('button', { name: 'Undo' }).click()
  await row.waitFor()
  expect(await stateOf()).toBe(200)

  await page.getByRole('checkbox', { name: 'Select all rows on this page' }).check()
  await page.getByText('2 rows selected').waitFor()
  await expectView(page, 'agents-selected')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByText('No agents yet').waitFor()
  await page.getByRole('link', { name: 'Bin', exact: true }).click()
  await page.getByRole('row', { name: /Other/ }).waitFor()
  await expectView(page, 'bin')
  await page.getByRole('button', { name: 'Actions for Greeter' }).click()
  await page.getByRole('menuitem', { name: 'Restore' }).click()
  await row.waitFor({ state: 'hidden' })
  expect((await app.call('GET', '/v1/keys/validate', { key: agent_key })).status).toBe(200)
  await page.getByRole('button', { name: 'Actions for Other' }).click()
  await page.getByRole('menuitem', { name: 'Delete forever…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete forever' }).click()
  await page.getByText('The bin is empty').waitFor()
  expect(complaints).toEqual([])
})

test('the agent list remembers its hidden columns and keeps its sort order in the URL', async () => {
  const app = await startApp()
  for (const name of ['Beta', 'Alpha']) await app.createAgent(`name: ${name}\ninstructions: Help.\n`)
  const { page, complaints } = await openConsole(app, browser)
  const names = () => page.locator('tbody .row-link').allInnerTexts()
  await expect.poll(names).toEqual(['Alpha', 'Beta'])
  await page.getByRole('button', { name: 'Name' }).click()
  await page.getByRole('columnheader', { name: 'Name' }).and(page.locator('[aria-sort=ascending]')).waitFor()
  await page.getByRole('button', { name: 'Name' }).click()
  await expect.poll(names).toEqual(['Beta', 'Alpha'])
  expect(page.url()).toContain('sort=name&order=desc')
  await page.getByRole('button', { name: 'Columns' }).click()
  await page.getByRole('menuitemcheckbox', { name: 'Model' }).click()
  await page.getByRole('columnheader', { name: 'Model' }).waitFor({ state: 'detached' })
  await page.reload()
  await expect.poll(names).toEqual(['Beta', 'Alpha'])
  expect(await page.getByRole('columnheader', { name: 'Model' }).count()).toBe(0)
  expect(complaints).toEqual([])
})
