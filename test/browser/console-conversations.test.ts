/** Tests the console's conversation pages, and the fields that make an agent store its conversations. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { rowOf } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { KEEPER, runTurn } from '../support/storing-chat.ts'
import { tool } from '../support/tools.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const markup = '<b>Where</b> is <img src=x onerror="document.title=1"> my order?'

/** Starts a service with an agent that stores its conversations and has a tool. */
async function startKeeper() {
  const orders = tool(() => '<i>on its way</i>', { description: 'Finds an order.' })
  const app = await startApp({}, { tools: { orders } })
  return { app, ...(await app.createAgent(`${KEEPER}tools: [orders]\n`)) }
}

/** Runs a turn with a tool call, a turn that reaches the token limit, and a turn that fails. */
async function runThree(app: TestApp, key: string): Promise<string> {
  const first = await runTurn(app, key, `${markup} [[tool:orders {"order":"A-1042"}]]`)
  const after = { previous_response_id: first.responseId }
  await runTurn(app, key, 'Please explain everything.', { ...after, max_output_tokens: 2 })
  const body = { model: 'mock', input: 'Please try again. [[error:400]]', ...after }
  const { status } = await app.call('POST', '/v1/responses', { key, body })
  expect(status).toBe(400)
  const path = `/v1/conversations/${first.conversation}`
  await expect.poll(async () => (await app.call('GET', path)).body.parley.last_status).toBe('failed')
  const metadata = { customer: '4711', channel: 'Web shop' }
  expect((await app.call('POST', path, { body: { metadata } })).status).toBe(200)
  return first.conversation
}

describe('the list of conversations', () => {
  test('explains how to store conversations if the list is empty', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/conversations')
    await page.getByText('No conversations yet').waitFor()
    await page.getByText('Store conversations').waitFor()
    await expectView(page, 'conversations-empty')
    await page.getByRole('link', { name: 'Choose an agent' }).click()
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
    expect(complaints).toEqual([])
  })

  test('explains that the operator forbids storage', async () => {
    const app = await startApp({ PARLEY_CONVERSATIONS: 'forbidden' })
    const { page } = await openConsole(app, browser, '/conversations')
    await page.getByText('This server does not store conversations').waitFor()
  })

  test('is sorted newest first, has several pages, and can be searched and filtered by agent', async () => {
    const { app, agent_id, agent_key } = await startKeeper()
    const other = await app.createAgent(KEEPER.replace('Keeper', 'Second keeper'))
    for (let count = 1; count <= 26; count++) await runTurn(app, agent_key, `Question ${count}.`)
    await runTurn(app, other.agent_key, 'Question for another agent.')
    const { page, complaints } = await openConsole(app, browser, '/conversations')
    const rows = page.getByRole('table', { name: 'Conversations' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(25)
    await expect
      .poll(() => rows.first().innerText())
      .toMatch(/Question for another agent\.\s+Second keeper\s+1\s+Completed/)
    await page.getByRole('button', { name: 'Next' }).click()
    await expect.poll(() => rows.count()).toBe(2)
    expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Previous' }).click()
    await expect.poll(() => rows.count()).toBe(25)
    await page.getByRole('textbox', { name: 'Search conversations' }).fill('question 7.')
    await expect.poll(() => rows.count()).toBe(1)
    await page.getByRole('textbox', { name: 'Search conversations' }).fill('')
    await page.getByRole('combobox', { name: 'Agent' }).fill('second')
    await page.getByRole('option', { name: 'Second keeper' }).click()
    await expect.poll(() => rows.count()).toBe(1)
    expect(page.url()).toContain(`agent=${other.agent_id}`)
    await page.goto(`${app.url}/console/conversations?agent=${agent_id}`)
    await expect.poll(() => rows.count()).toBe(25)
    expect(complaints).toEqual([])
  })
})

describe('a conversation', () => {
  test('shows its turns, tool calls and failures without rendering their markup, and can be deleted', async () => {
    const { app, agent_key } = await startKeeper()
    const id = await runThree(app, agent_key)
    const { page, complaints } = await openConsole(app, browser, '/conversations', { width: 1440 })
    await rowOf(page, 'Failed').waitFor()
    await expectView(page, 'conversations')
    await page.getByRole('link', { name: /Where/ }).click()
    const turns = page.getByRole('list', { name: 'Transcript' }).locator(':scope > li')
    await expect.poll(() => turns.count()).toBe(3)
    await turns.first().getByText(markup).waitFor()
    expect(await turns.first().innerText()).toMatch(/mock\/mock · \d+ \+ \d+ tokens/)
    await turns.nth(1).getByText('The answer reached the token limit.').waitFor()
    await turns
      .nth(2)
      .getByText(/^The turn failed \(/)
      .waitFor()
    await expectView(page, 'conversation')

    await turns.first().getByText('orders', { exact: true }).click()
    await page.getByRole('region', { name: 'Arguments of orders' }).getByText('A-1042').waitFor()
    await page.getByRole('region', { name: 'Result of orders' }).getByText('<i>on its way</i>').waitFor()
    expect(await page.locator('.transcript').locator('b, i, img').count()).toBe(0)
    const details = page.getByRole('region', { name: 'Details' })
    expect(await details.innerText()).toMatch(/customer\s+4711/)
    await expectView(page, 'conversation-tool')

    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('dialog', { name: 'Delete conversation' }).waitFor()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('No conversations yet').waitFor()
    expect((await app.call('GET', `/v1/conversations/${id}`)).status).toBe(404)
    await page.goto(`${app.url}/console/conversations/${id}`)
    await page.getByText('This page does not exist').waitFor()
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
  })
})

describe('the fields for storing conversations', () => {
  test('write settings to the definition, remove them, and show errors', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}`)
    const text = page.getByRole('textbox', { name: 'Definition as YAML' })
    const store = page.getByRole('switch', { name: 'Store conversations' })
    await store.check({ force: true })
    await text.getByText('keep: 30d').waitFor()
    const keep = page.getByRole('textbox', { name: 'Delete after' })
    await keep.fill('30')
    await page.locator('.mantine-InputWrapper-error', { hasText: 'must be a duration' }).waitFor()
    expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    await keep.fill('14d')
    await page.getByLabel('If the client disconnects').selectOption('Finish the answer')
    await page.getByLabel('Tool data').selectOption('Store only tool names')
    await page.getByLabel('History in turns').fill('10')
    await page.getByLabel('History in tokens').fill('8000')
    await text.getByText('tokens: 8000').waitFor()
    const save = page.getByRole('button', { name: 'Save' })
    await expect.poll(() => save.isEnabled()).toBe(true)
    await page.getByLabel('History in tokens').scrollIntoViewIfNeeded()
    await expectView(page, 'edit-conversations')
    await save.click()
    await page.getByText('Saved as version 2').waitFor()
    const readYaml = async () => (await app.call('GET', `/v1/agents/${agent_id}`)).body.yaml
    expect(parse(await readYaml()).conversations).toEqual({
      keep: '14d',
      onDisconnect: 'continue',
      toolData: 'names',
      history: { turns: 10, tokens: 8000 },
    })
    await page.reload()
    await expect.poll(() => keep.inputValue()).toBe('14d')
    expect(await page.getByLabel('If the client disconnects').inputValue()).toBe('continue')
    await store.uncheck({ force: true })
    await save.click()
    await page.getByText('Saved as version 3').waitFor()
    expect(await readYaml()).not.toContain('conversations')
    expect(complaints).toEqual([])
  })
})
