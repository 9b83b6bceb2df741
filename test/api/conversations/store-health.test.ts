/** Tests the metrics of stored turns, and what a server reports while it cannot store them. */
import { mkdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { STORING, storeChat } from '../../support/conversations.ts'
import { openSqliteFile } from '../../support/database.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import { scrape } from '../../support/scrape.ts'
import { openStream, resume, sendChat, splitStream } from '../../support/stored-chats.ts'

const harness = await startChatHarness()

const readReady = async (app: TestApp) => {
  const { status, body } = await app.call('GET', '/readyz')
  return [status, body.status, body.checks.conversations]
}

async function isStored(app: TestApp, agentId: string): Promise<string | null> {
  const body = chatRequest('Hello', { model: `agent/${agentId}` })
  const { status, headers } = await app.call('POST', '/v1/chat/completions', { body })
  expect(status).toBe(200)
  return headers.get('x-parley-stored')
}

test('a server whose conversation store is down still answers and reports degraded until the store recovers', async () => {
  const clock = createFakeClock()
  const dataDir = join(await makeFolder(), 'data')
  const app = await harness.start({ PARLEY_DATA_DIR: dataDir }, { clock })
  const { agent_id: id } = await app.createAgent(STORING)
  expect(await readReady(app)).toEqual([200, 'ready', undefined])
  // SQLite cannot open a folder.
  await mkdir(join(dataDir, 'conversations.db'))
  expect(await isStored(app, id)).toBe('false')
  expect(await readReady(app)).toEqual([200, 'degraded', 'down'])
  const failing = await scrape(app.url)
  expect(failing.sum('parley_turns_unstored_total', { reason: 'unavailable' })).toBe(1)
  expect(failing.sum('parley_conversation_store_up')).toBe(0)
  expect(failing.sum('parley_turns_total')).toBe(0)

  await rmdir(join(dataDir, 'conversations.db'))
  // The server creates the file again, which can take longer than the timeout of a check.
  const readLater = () => {
    clock.advance(1)
    return readReady(app)
  }
  await expect.poll(readLater).toEqual([200, 'ready', undefined])
  expect(await isStored(app, id)).toBe('true')
  expect((await scrape(app.url)).sum('parley_conversation_store_up')).toBe(1)
})

test('a turn above PARLEY_CONVERSATIONS_MAX_BYTES is counted as unstored, and the store is still reported as up', async () => {
  const clock = createFakeClock()
  const app = await harness.start({ PARLEY_CONVERSATIONS_MAX_BYTES: '1000' }, { clock })
  const { agent_id: id } = await app.createAgent(STORING)
  await storeChat(app, id, 'x'.repeat(2000))
  clock.advance(60)
  expect(await isStored(app, id)).toBe('false')
  expect(await readReady(app)).toEqual([200, 'ready', undefined])
  const metrics = await scrape(app.url)
  expect(metrics.sum('parley_turns_unstored_total', { reason: 'quota' })).toBe(1)
  expect(metrics.sum('parley_conversation_store_up')).toBe(1)
})

test('the metrics count running turns, ended turns by status, and resumed streams', async () => {
  const app = await harness.start()
  const { agent_id: id, agent_key: key } = await app.createAgent(STORING)
  const model = `agent/${id}`
  const hanging = await app.call('POST', '/v1/responses', {
    body: { model, input: '{{up:hang}}', background: true },
  })
  expect((await scrape(app.url)).sum('parley_turns_running')).toBe(1)
  await app.call('POST', `/v1/responses/${hanging.body.id}/cancel`)
  const [first] = splitStream((await sendChat(app, 'Hello there', { key })).text)
  expect((await resume(app, key, first?.id as string)).status).toBe(200)
  const { body: whole } = await app.call('POST', '/v1/responses', { body: { model, input: 'Hello' } })
  expect((await app.call('GET', `/v1/responses/${whole.id}?stream=true`)).status).toBe(200)
  expect((await app.call('GET', `/v1/responses/${whole.id}?stream=true&starting_after=1`)).status).toBe(200)

  await expect.poll(async () => (await scrape(app.url)).sum('parley_turns_total')).toBe(3)
  const metrics = await scrape(app.url)
  expect(metrics.sum('parley_turns_running')).toBe(0)
  expect(metrics.sum('parley_turns_total', { status: 'cancelled' })).toBe(1)
  expect(metrics.sum('parley_turns_total', { status: 'completed' })).toBe(2)
  expect(metrics.sum('parley_turn_resumes_total', { api: 'chat' })).toBe(1)
  expect(metrics.sum('parley_turn_resumes_total', { api: 'responses' })).toBe(1)
  expect(metrics.sum('parley_turn_flush_seconds_count')).toBeGreaterThanOrEqual(3)
  expect(metrics.sum('parley_turn_events_waiting')).toBe(0)
  expect(metrics.sum('parley_turn_bytes_waiting')).toBe(0)
})

test('the metrics report how many events wait to be stored while another process locks the database', async () => {
  const dataDir = join(await makeFolder(), 'data')
  const app = await harness.start({ PARLEY_DATA_DIR: dataDir })
  const { agent_id: id, agent_key: key } = await app.createAgent(STORING)
  await storeChat(app, id, 'Hello')
  const stream = await openStream(app, '{{up:chunks 100}}{{up:delay 20}}', { key })
  await stream.readEvents(1)
  const holder = openSqliteFile(dataDir, 'conversations.db')
  // Does not wait for the lock, because waiting would block the server, which runs in this process.
  holder.pragma('busy_timeout = 0')
  await expect.poll(() => holder.exec('begin immediate').inTransaction).toBe(true)
  onTestFinished(() => void (holder.inTransaction && holder.exec('rollback')))
  const readWaiting = async () => {
    const metrics = await scrape(app.url)
    return [metrics.sum('parley_turn_events_waiting') > 0, metrics.sum('parley_turn_bytes_waiting') > 0]
  }
  await expect.poll(readWaiting).toEqual([true, true])
  holder.exec('rollback')
  await stream.readAll()
  await expect.poll(readWaiting).toEqual([false, false])
})
