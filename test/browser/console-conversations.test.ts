/** Tests the console's conversation pages, and the fields that make an agent store its conversations. */
import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { KEEPER, runTurn } from '../support/storing-chat.ts'
import { tool } from '../support/tools.ts'
import { beginSession, sayAndWait } from '../support/visitors.ts'

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
    expect(await page.getByText('Choose a conversation').count()).toBe(0)
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

  test('is sorted newest first, loads further pages at its end, and keeps combined filters in the URL', async () => {
    const { app, agent_id, agent_key } = await startKeeper()
    const other = await app.createAgent(KEEPER.replace('Keeper', 'Second keeper'))
    for (let count = 1; count <= 31; count++) await runTurn(app, agent_key, `Question ${count}.`)
    const late = await runTurn(app, other.agent_key, 'Question for another agent.')
    await app.call('PUT', `/v1/conversations/${late.conversation}/tags`, { body: { tags: ['late'] } })
    const { page, complaints } = await openConsole(app, browser, '/conversations')
    const rows = page.getByRole('list', { name: 'Conversations' }).getByRole('listitem')
    await expect
      .poll(() => rows.first().innerText())
      .toMatch(/Question for another agent\.\s+just now\s+Second keeper\s+late/)
    await rows.nth(29).scrollIntoViewIfNeeded()
    await expect.poll(() => rows.count()).toBe(32)
    const titles = await rows.locator('.desk-row-title').allInnerTexts()
    const numbers = Array.from({ length: 31 }, (_, index) => 31 - index)
    expect(titles).toEqual(['Question for another agent.', ...numbers.map((number) => `Question ${number}.`)])
    await page.getByRole('textbox', { name: 'Search conversations' }).fill('question 7')
    await expect.poll(() => rows.count()).toBe(1)
    expect(await rows.locator('mark').allInnerTexts()).toEqual(['Question', '7'])
    await page.getByRole('textbox', { name: 'Search conversations' }).fill('')
    await expect.poll(() => rows.count()).toBeGreaterThan(29)
    await page.getByRole('button', { name: 'Filters' }).click()
    await page.getByRole('textbox', { name: 'Tag' }).fill('late')
    await page.getByRole('textbox', { name: 'Tag' }).press('Enter')
    await page.getByRole('combobox', { name: 'Turn status' }).selectOption('Completed')
    await page.getByRole('combobox', { name: 'Channel' }).selectOption('API')
    await expect.poll(() => rows.count()).toBe(1)
    const address = `${app.url}/console/conversations?channel=api&status=completed&tag=late`
    expect(new URL(page.url()).searchParams.toString().split('&').sort().join('&')).toBe(
      address.split('?')[1],
    )
    await page.keyboard.press('Escape')
    await expectView(page, 'conversations-filtered')
    await page.getByRole('button', { name: 'Remove filter: Tag' }).click()
    await expect.poll(() => rows.count()).toBeGreaterThan(29)
    await page.goto(`${app.url}/console/conversations?agent=${agent_id}&version=1&tag=late`)
    await page.getByText('No matching conversations').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).first().click()
    await expect.poll(() => rows.count()).toBeGreaterThan(29)
    expect(complaints).toEqual([])
  })

  test('can be used with the keyboard', async () => {
    const { app, agent_key } = await startKeeper()
    for (const name of ['First', 'Second', 'Third']) await runTurn(app, agent_key, `${name} question.`)
    const { page, complaints } = await openConsole(app, browser, '/conversations')
    await page.getByText('Third question.').first().waitFor()
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '')
    for (const key of ['j', 'j', 'j']) await page.keyboard.press(key)
    expect(await focused()).toContain('First question.')
    await page.keyboard.press('k')
    expect(await focused()).toContain('Second question.')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Second question.', level: 1 }).waitFor()
    await page.keyboard.press('r')
    expect(await page.evaluate(() => document.activeElement?.ariaLabel)).toBe('Reply')
    await page.keyboard.press('Escape')
    await page.keyboard.press('/')
    await page.keyboard.type('first')
    await expect.poll(() => page.url()).toContain('q=first')
    await page.locator('h1').click()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Write a reply').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('e')
    await page.getByRole('heading', { name: 'Conversations', level: 1 }).waitFor()
    expect(new URL(page.url()).search).toBe('?q=first')
    expect(complaints).toEqual([])
  })

  test('deletes the selected conversations after a confirmation', async () => {
    const { app, agent_key } = await startKeeper()
    for (const name of ['First', 'Second', 'Third']) await runTurn(app, agent_key, `${name} question.`)
    const { page } = await openConsole(app, browser, '/conversations')
    await page.getByRole('checkbox', { name: 'Select First question.' }).check()
    await page.getByRole('checkbox', { name: 'Select Third question.' }).check()
    await page.getByRole('button', { name: 'Delete…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete conversations' })
    await dialog.waitFor()
    const listTitles = async (): Promise<string[]> => {
      const { body } = await app.call('GET', '/v1/conversations?order=asc')
      return body.data.map(({ parley }: { parley: { title: string } }) => parley.title)
    }
    expect(await listTitles()).toEqual(['First question.', 'Second question.', 'Third question.'])
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Conversations deleted').waitFor()
    const rows = page.getByRole('list', { name: 'Conversations' }).getByRole('listitem')
    await expect.poll(() => rows.locator('.desk-row-title').allInnerTexts()).toEqual(['Second question.'])
    expect(await listTitles()).toEqual(['Second question.'])
  })
})

describe('a conversation', () => {
  test('states that its answers come from the mock model', async () => {
    const { app, agent_key } = await startKeeper()
    const { conversation } = await runTurn(app, agent_key, 'Hello')
    const { page } = await openConsole(app, browser, `/conversations/${conversation}`)
    await page.getByRole('note', { name: 'Mock model' }).waitFor()
  })

  test('shows turns, tool calls and failures without rendering markup, and can be exported and deleted', async () => {
    const { app, agent_key } = await startKeeper()
    const id = await runThree(app, agent_key)
    const { page, complaints } = await openConsole(app, browser, '/conversations', { width: 1440 })
    await page.getByText('Failed').first().waitFor()
    await expectView(page, 'conversations')
    await page.getByRole('link', { name: /Where/ }).click()
    const turns = page.getByRole('list', { name: 'Transcript' }).locator(':scope > li')
    await expect.poll(() => turns.count()).toBe(3)
    await turns.first().getByText(markup).first().waitFor()
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
    await page.getByRole('tab', { name: 'Conversation' }).click()
    expect(await page.getByRole('region', { name: 'Facts' }).innerText()).toMatch(/customer\s+4711/)
    await expectView(page, 'conversation-facts')

    const downloading = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Export', exact: true }).click()
    const exported = await readFile(await (await downloading).path(), 'utf8')
    expect(
      exported
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).conversation_id),
    ).toEqual([id, id, id, undefined])

    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('dialog', { name: 'Delete conversation' }).waitFor()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('No conversations yet').waitFor()
    expect((await app.call('GET', `/v1/conversations/${id}`)).status).toBe(404)
    await page.goto(`${app.url}/console/conversations/${id}`)
    await page.getByText('This page does not exist').waitFor()
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
  })

  test('collapses the turns that the visitor has replaced, and states what the visitor did', async () => {
    const { app, agent_key } = await startKeeper()
    const visitor = await beginSession(app, agent_key)
    const { sent: first } = await sayAndWait(visitor, 'A wrong number')
    const { id: conversation } = first.conversation
    const { page, complaints } = await openConsole(app, browser, `/conversations/${conversation}`)
    const transcript = page.getByRole('list', { name: 'Transcript' })
    await transcript.getByText('A wrong number', { exact: true }).waitFor()
    const { sent } = await sayAndWait(visitor, 'The right number', { conversation, replaces: first.turn.id })
    await transcript.getByText('The right number', { exact: true }).waitFor()
    await transcript.getByText('Replaced by a changed message').waitFor()
    await transcript.getByText('The visitor changed a message').waitFor()
    await transcript.getByText('A wrong number', { exact: true }).waitFor({ state: 'hidden' })
    await transcript.getByText('Replaced by a changed message').click()
    await transcript.getByText('A wrong number', { exact: true }).waitFor()
    await visitor.visitor.remove.mutate({ turn: sent.turn.id })
    await transcript.getByText('The visitor removed a message').waitFor()
    await transcript.getByText('Removed by the visitor').waitFor()
    expect(complaints).toEqual([])
  })

  test('shows answers as Markdown, without images and with the host of each disguised link', async () => {
    const { app, agent_key } = await startKeeper()
    const text =
      '# Prices\n\n- **cot**: `14`\n\n![x](https://evil.example/x.png) [bank.example](https://evil.example/)'
    const { conversation } = await runTurn(app, agent_key, text)
    const { page, complaints } = await openConsole(app, browser, `/conversations/${conversation}`)
    const answer = page.locator('article[data-author=model]')
    await answer.locator('li strong', { hasText: 'cot' }).waitFor()
    expect(await answer.getByRole('link', { name: 'bank.example' }).innerText()).toBe(
      'bank.example (evil.example)',
    )
    expect(await answer.locator('img').count()).toBe(0)
    // Blocks that follow another block have a distance from it.
    expect(await answer.locator('ul').evaluate((list) => getComputedStyle(list).marginTop)).toBe('8px')
    expect(await page.locator('article[data-author=visitor]').innerText()).toContain('**cot**')
    expect(complaints).toEqual([])
  })

  test('shows the steps of a turn, and can be rated, tagged and annotated', async () => {
    const { app, agent_key } = await startKeeper()
    const id = await runThree(app, agent_key)
    const { page, complaints } = await openConsole(app, browser, `/conversations/${id}`, { width: 1440 })
    const steps = page.getByRole('list', { name: 'Timeline' }).getByRole('listitem')
    await expect
      .poll(() => steps.last().innerText())
      .toMatch(/mock\/mock failed.*The provider rejected the request \(HTTP 400\)/s)
    await page.getByRole('button', { name: 'Turn 1 · Why' }).click()
    await expect
      .poll(() => steps.allInnerTexts())
      .toEqual([
        expect.stringMatching(/^Chose mock\/mock/),
        expect.stringMatching(/^mock\/mock answered/),
        expect.stringMatching(/^Called the tool orders\s+\d+ ms\s+on this server/),
        expect.stringMatching(/^mock\/mock answered/),
        expect.stringMatching(/^Finished after/),
      ])
    expect(page.url()).toContain('turn=turn_')
    await expectView(page, 'conversation-why')
    await page.getByRole('button', { name: 'Bad answer' }).click()
    await page.getByRole('combobox', { name: 'Reason' }).selectOption('Incorrect')
    await page.getByRole('textbox', { name: 'Comment' }).fill('It is lost.')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Your team · Incorrect').waitFor()
    await page.getByRole('tab', { name: 'Conversation' }).click()
    await page.getByRole('textbox', { name: 'Add tag' }).fill('lost')
    await page.getByRole('textbox', { name: 'Add tag' }).press('Enter')
    await page.getByRole('button', { name: 'Remove tag: lost' }).waitFor()
    await page.getByRole('textbox', { name: 'Note for your team' }).fill('Ask the carrier.')
    await page.getByRole('button', { name: 'Add note' }).click()
    await page.getByRole('button', { name: 'Delete note' }).waitFor()
    await expectView(page, 'conversation-annotated')
    const { body } = await app.call('GET', `/v1/conversations/${id}`)
    expect(body.parley).toMatchObject({ tags: ['lost'], down: 1 })
    const { body: notes } = await app.call('GET', `/v1/conversations/${id}/notes`)
    expect(notes.data).toMatchObject([{ text: 'Ask the carrier.' }])
    const { body: turns } = await app.call('GET', `/v1/conversations/${id}/turns?order=asc`)
    expect(turns.data[0].ratings).toMatchObject([
      { source: 'owner', value: 'down', reason: 'incorrect', comment: 'It is lost.' },
    ])
    await page.getByRole('button', { name: 'Ratings by day, agent and version' }).click()
    await page.getByRole('dialog', { name: 'Ratings' }).getByText('Agent version').click()
    const figures = page.getByRole('table', { name: 'Ratings' }).locator('tbody tr')
    await expect.poll(() => figures.innerText()).toMatch(/Keeper, Version 1\s+0\s+1\s+0%\s+Incorrect \(1\)/)
    await expectView(page, 'conversation-ratings')
    await figures.getByRole('link', { name: '1', exact: true }).click()
    await expect.poll(() => page.url()).toContain('rating=down')
    expect(page.url()).toContain('version=1')
    await page.getByRole('list', { name: 'Conversations' }).getByText('lost').waitFor()
    expect(complaints).toEqual([])
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
