/** Tests the console's usage page: totals, charts, tables and the CSV export. */
import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { addDays, dayOf } from '../../src/usage/days.ts'
import { renderHistogram } from '../../src/usage/histogram.ts'
import { createTenant } from '../support/agents.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { startChatHarness } from '../support/chat-harness.ts'
import { readTable } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { createFallbackHarness, noRetries, onlyForModel } from '../support/fallbacks.ts'
import { sendChat } from '../support/usage.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const { startAgent } = createFallbackHarness(await startChatHarness())

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const today = dayOf(Date.now())

/** Inserts one month of usage records. */
async function writeMonth(app: TestApp, agents: readonly string[]): Promise<void> {
  const parts = ['mock', 'mock-large'].flatMap((model) => agents.map((agent_id) => ({ model, agent_id })))
  const rows = Array.from({ length: 28 }, (_, age) => age)
    .filter((age) => age % 7 !== 3)
    .flatMap((age) =>
      parts.map(({ model, agent_id }, place) => {
        const requests = 20 + ((age * 7 + place * 13) % 40)
        const slow = 60 + ((age + place) % 9)
        return {
          parent_key_id: app.key.slice(4, 16),
          day: addDays(today, -age),
          agent_id,
          model,
          provider: 'mock',
          requests,
          errors: age % 5 === 0 ? 3 : 0,
          prompt_tokens: requests * 420,
          completion_tokens: requests * (90 + place * 40),
          estimated: 0,
          latency_histogram: renderHistogram(
            new Map([
              [slow, requests],
              [slow + 12, 2],
            ]),
          ),
          first_byte_histogram: renderHistogram(
            new Map([
              [slow - 20, requests],
              [slow - 6, 2],
            ]),
          ),
        }
      }),
    )
  await app.service.deps.db.insertInto('usage_days').values(rows).execute()
}

test('the usage page shows calls in its totals, its tables and the CSV export', async () => {
  const app = await startApp()
  const { agent_id: id, agent_key: key } = await app.createAgent()
  await sendChat(app, 'one two three')
  await sendChat(app, 'hi', {}, key)
  await app.stream({ messages: [{ role: 'user', content: 'hi' }] }, key)
  await sendChat(app, 'hi', { model: 'nobody' })
  const { body: reported } = await app.call('GET', '/v1/usage')
  const { page, complaints } = await openConsole(app, browser, '/usage?range=7')
  const [newest, ...rest] = await readTable(page, 'Usage by day')
  expect(newest?.slice(1, 5)).toEqual([
    String(reported.total.requests),
    String(reported.total.errors),
    String(reported.total.prompt_tokens),
    String(reported.total.completion_tokens),
  ])
  expect(rest.map((cells) => cells[1])).toEqual(['0', '0', '0', '0', '0', '0'])
  await page.getByRole('region', { name: 'Requests', exact: true }).getByText('Show data').click()
  expect(await readTable(page, 'Data for requests')).toHaveLength(7)

  await page.getByRole('radiogroup', { name: 'Group by' }).getByText('Agent').click()
  await page.getByRole('table', { name: 'Usage by agent' }).waitFor()
  expect(page.url()).toContain('by=agent')
  const byAgent = await readTable(page, 'Usage by agent')
  expect(byAgent.map((cells) => cells.slice(0, 2))).toEqual(
    expect.arrayContaining([
      ['Greeter', '2'],
      ['No agent', expect.any(String)],
    ]),
  )
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download CSV' }).click()
  const download = await downloading
  expect(download.suggestedFilename()).toBe(`usage-by-agent-${addDays(today, -6)}-${today}.csv`)
  const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n')
  expect(lines[0]).toMatch(/^agent,name,requests,errors,prompt_tokens/)
  expect(lines.find((line) => line.startsWith(id))).toMatch(new RegExp(`^${id},Greeter,2,0,\\d+,\\d+`))
  expect(lines).toHaveLength(byAgent.length + 1)
  expect(complaints).toEqual([])
})

test('the usage page groups a month of calls by day, agent, model and key, and exports them as CSV', async () => {
  const app = await startApp()
  const one = await app.createAgent()
  const two = await app.createAgent('name: =Support, "north"\ninstructions: Help.\n')
  await writeMonth(app, [one.agent_id, two.agent_id])
  const { page, complaints } = await openConsole(app, browser, '/usage')
  const days = await readTable(page, 'Usage by day')
  expect(days).toHaveLength(30)
  expect(days[3]?.slice(1, 3)).toEqual(['0', '0'])
  await page.locator('.plot svg').nth(3).waitFor()
  await expectView(page, 'usage-day')
  for (const [by, label] of [
    ['agent', 'Agent'],
    ['model', 'Model'],
  ] as const) {
    await page.getByRole('radiogroup', { name: 'Group by' }).getByText(label).click()
    await page.getByRole('table', { name: `Usage by ${by}` }).waitFor()
    expect(await readTable(page, `Usage by ${by}`)).toHaveLength(2)
    await expectView(page, `usage-${by}`)
  }
  await page.getByRole('radiogroup', { name: 'Keys' }).getByText('All keys').click()
  await page.getByRole('radiogroup', { name: 'Group by' }).getByText('Key').click()
  await page.getByRole('table', { name: 'Usage by key' }).waitFor()
  expect((await readTable(page, 'Usage by key')).map(([name]) => name)).toEqual(['first'])
  await page.reload()
  await page.getByRole('table', { name: 'Usage by key' }).waitFor()
  await page.goto(`${app.url}/console/usage?by=agent&from=${addDays(today, -1)}&to=${today}`)
  await page.getByRole('table', { name: 'Usage by agent' }).waitFor()
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download CSV' }).click()
  const text = await readFile(await (await downloading).path(), 'utf8')
  expect(text).toContain(`"'=Support, ""north"""`)
  expect(complaints).toEqual([])
})

test('the usage page opens the calls behind a chart bar, with their attempts, and keeps its filters in the URL', async () => {
  const { app, id, ask } = await startAgent({}, noRetries, createFakeClock(Math.floor(Date.now() / 1000)))
  await ask('hello')
  await ask(onlyForModel('{{up:status 503}}'))
  await sendChat(app, 'without an agent', { model: 'up-chat' })
  await app.call('GET', '/v1/usage')
  await app.service.deps.db
    .insertInto('usage_days')
    .values({
      parent_key_id: app.key.slice(4, 16),
      day: addDays(today, -7),
      agent_id: id,
      model: 'up-chat',
      provider: 'gateway',
      requests: 1,
      errors: 0,
      prompt_tokens: 1,
      completion_tokens: 1,
      estimated: 0,
      latency_histogram: '{}',
      first_byte_histogram: '{}',
    })
    .execute()
  const { page, complaints } = await openConsole(app, browser, '/usage?range=7')
  await page.getByText('+200% compared with the previous 7 days').waitFor()
  await page.getByRole('combobox', { name: 'Agent' }).selectOption('Greeter')
  await page.getByText('+100% compared with the previous 7 days').waitFor()
  expect(page.url()).toContain(`agent=${id}`)

  const requests = page.getByRole('region', { name: 'Requests', exact: true })
  await requests.locator('.plot-bar rect').last().click()
  await page.getByRole('table', { name: 'Calls' }).waitFor()
  await expect.poll(async () => (await readTable(page, 'Calls')).length).toBe(2)
  const cellsOf = async () => (await readTable(page, 'Calls')).map((cells) => cells.join(' | '))
  expect(await cellsOf()).toEqual([
    expect.stringMatching(
      /Greeter \| up-small \(gateway\) \| Succeeded .*\b2\s*up-chat \(gateway\): status_5xx/,
    ),
    expect.stringMatching(/Greeter \| up-chat \(gateway\) \| Succeeded/),
  ])
  await expectView(page, 'usage-calls')
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download CSV' }).click()
  const lines = (await readFile(await (await downloading).path(), 'utf8')).trim().split('\r\n')
  expect(lines).toHaveLength(3)
  expect(lines[1]).toContain('gateway/up-chat: status_5xx')
  await page.getByRole('combobox', { name: 'Model' }).selectOption('up-small')
  await expect.poll(async () => (await cellsOf()).length).toBe(1)
  await page.reload()
  await expect.poll(async () => (await cellsOf()).length).toBe(1)
  await page.getByRole('radiogroup', { name: 'View' }).getByText('Summary').click()
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('Succeeded')
  await page.getByText('These totals include only calls with the chosen outcome.').waitFor()
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('Provider error')
  await page.getByText('No calls in this period').waitFor()
  await page.getByRole('radiogroup', { name: 'View' }).getByText('Calls').click()
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('Provider timeout')
  await page.getByText('No matching calls').waitFor()
  expect(page.url()).toContain('status=backend_timeout')
  expect(complaints).toEqual([])
})

test('a call can be found by the id of its request in any period, and links to its agent', async () => {
  const app = await startApp()
  const { agent_id: id, agent_key: key } = await app.createAgent()
  const sent = { messages: [{ role: 'user', content: 'hi' }] }
  for (const request of ['first-request', 'second-request'])
    await app.call('POST', '/v1/chat/completions', { key, body: sent, headers: { 'X-Request-Id': request } })
  const { page, context, complaints } = await openConsole(app, browser, '/usage')
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: app.url })
  await page.goto(`${app.url}/console/usage?view=calls&request=first-request`)
  await expect.poll(async () => (await readTable(page, 'Calls')).length).toBe(1)
  await page.getByRole('textbox', { name: 'Search calls' }).fill('second-request')
  await page.getByRole('button', { name: 'Actions for second-request' }).click()
  await page.getByRole('menuitem', { name: 'Copy request ID' }).click()
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe('second-request')
  await expectView(page, 'usage-call-found')
  await page.getByRole('table', { name: 'Calls' }).getByRole('link', { name: 'Greeter' }).click()
  await page.waitForURL((url) => url.pathname === `/console/agents/${id}`)
  expect(complaints).toEqual([])
})

test('administrators choose a key by its name, and calls show the names of their keys', async () => {
  const app = await startApp()
  const other = await createTenant(app)
  await sendChat(app, 'mine')
  await sendChat(app, 'theirs', {}, other)
  await sendChat(app, 'theirs', {}, other)
  const { page, complaints } = await openConsole(app, browser, '/usage?view=calls&whose=all')
  await expect.poll(async () => (await readTable(page, 'Calls')).length).toBe(3)
  await page.getByRole('combobox', { name: 'Key' }).selectOption('another')
  await expect.poll(async () => (await readTable(page, 'Calls')).length).toBe(2)
  expect((await readTable(page, 'Calls')).every((cells) => cells.includes('another'))).toBe(true)
  expect(page.url()).toContain(`key=${other.slice(4, 16)}`)
  await expectView(page, 'usage-key')
  await page.getByRole('combobox', { name: 'Key' }).selectOption('first')
  await expect.poll(async () => (await readTable(page, 'Calls')).length).toBe(1)
  expect(complaints).toEqual([])
})

test('the list of calls has pages of 50 calls', async () => {
  const app = await startApp()
  for (let sent = 0; sent < 51; sent++) await sendChat(app, 'hi')
  const { page } = await openConsole(app, browser, '/usage?view=calls')
  await page.getByRole('table', { name: 'Calls' }).waitFor()
  expect(await readTable(page, 'Calls')).toHaveLength(50)
  await page.getByRole('button', { name: /^(Next|Older)/ }).click()
  await expect.poll(async () => (await readTable(page, 'Calls')).length).toBe(1)
  await page.getByRole('button', { name: /^(Previous|Newer)/ }).click()
  await expect.poll(async () => (await readTable(page, 'Calls')).length).toBe(50)
})

test('the usage page shows a message for an empty period and a retry button after a failure', async () => {
  const app = await startApp()
  const { page } = await openConsole(app, browser, '/usage')
  await page.getByText('No calls in this period').waitFor()
  await expectView(page, 'usage-empty')
  await page.route('**/trpc/usage.list*', (route) => route.fulfill({ status: 404, body: '{}' }))
  await page.getByRole('radiogroup', { name: 'Period' }).getByText('7 days').click()
  await page.getByText('The usage could not be loaded').waitFor()
  await expectView(page, 'usage-failed')
  await page.unroute('**/trpc/usage.list*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('No calls in this period').waitFor()
})
