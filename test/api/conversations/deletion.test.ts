/**
 * Tests that deleted conversations, responses and items leave no byte in the data directory or in
 * PostgreSQL's tables.
 */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { maintain, STORING, storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import { findText } from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const DAY = 86_400
const CANARY = 'quokka7731'
/** Makes the model repeat the canary in its reasoning, its text and a tool call. */
const REPEATED = `{{up:reasoning ${CANARY}}}{{up:text ${CANARY} ${'and more '.repeat(900)}}}{{up:tool f {"a":"${CANARY}"}}}`
const METADATA = { note: CANARY }

async function start() {
  const clock = createFakeClock()
  const dataDir = join(await makeFolder(), 'data')
  const app = await harness.start({ PARLEY_DATA_DIR: dataDir }, { clock })
  const { agent_id: id } = await app.createAgent(STORING)
  const find = () => findText(app, dataDir, CANARY)
  const respond = async (input: unknown, more: object = {}) => {
    const body = { model: `agent/${id}`, input, instructions: CANARY, metadata: METADATA, ...more }
    const answer = await app.call('POST', '/v1/responses', { body })
    expect(answer.status).toBe(200)
    return answer.body
  }
  return { app, clock, id, find, respond }
}

/**
 * Stores the canary in a conversation's title, metadata, items and events and in a tool result; returns the
 * conversation's id.
 */
async function storeCanary({ app, find, respond }: Awaited<ReturnType<typeof start>>): Promise<string> {
  const { body: created } = await app.call('POST', '/v1/conversations', { body: { metadata: METADATA } })
  const output = { type: 'function_call_output', call_id: 'call_0', output: CANARY }
  await respond(`${CANARY} ${REPEATED}`, { conversation: created.id })
  await respond([output], { conversation: created.id, stream: true })
  for (let count = 0; count < 5; count++) await storeChat(app, await otherAgent(app), `Hello ${count}`)
  expect(await find()).not.toEqual([])
  return created.id
}

async function otherAgent(app: TestApp): Promise<string> {
  return (await app.createAgent(STORING)).agent_id
}

async function remove(app: TestApp, path: string): Promise<void> {
  expect((await app.call('DELETE', path)).status).toBeLessThan(300)
}

describe('no byte of a text remains', () => {
  test('after its conversation is deleted', async () => {
    const started = await start()
    await remove(started.app, `/v1/conversations/${await storeCanary(started)}`)
    expect(await started.find()).toEqual([])
  })

  test('after its conversation has expired', async () => {
    const started = await start()
    await storeCanary(started)
    started.clock.advance(31 * DAY)
    await maintain(started.app)
    expect(await started.find()).toEqual([])
  })

  test('after its agent is deleted', async () => {
    const started = await start()
    await storeCanary(started)
    await remove(started.app, `/v1/agents/${started.id}`)
    expect(await started.find()).toEqual([])
  })

  test('after its response is deleted', async () => {
    const { app, find, respond } = await start()
    const first = await respond('before', { instructions: null, metadata: null })
    for (const more of [{}, { previous_response_id: first.id }]) {
      const { id } = await respond(`${CANARY} ${REPEATED}`, more)
      expect(await find()).not.toEqual([])
      await remove(app, `/v1/responses/${id}`)
      expect(await find()).toEqual([])
    }
  })

  test('after its item is deleted', async () => {
    const { app, find } = await start()
    const items = [CANARY, 'Hello.'].map((content) => ({ type: 'message', role: 'user', content }))
    const { body: created } = await app.call('POST', '/v1/conversations', { body: { items } })
    const path = `/v1/conversations/${created.id}`
    const { body: list } = await app.call('GET', `${path}/items?order=asc`)
    expect(await find()).not.toEqual([])
    await remove(app, `${path}/items/${list.data[0].id}`)
    expect(await find()).toEqual([])
    expect((await app.call('GET', path)).body.parley.title).toBe('Hello.')
  })

  test.each(['response', 'conversation'])('after its %s is deleted while the model answers', async (what) => {
    const { app, find, respond } = await start()
    const { body: created } = await app.call('POST', '/v1/conversations', { body: {} })
    const input = `${CANARY} {{up:chunks 30}}{{up:hang-after 20}}`
    const { id } = await respond(input, { conversation: created.id, background: true })
    const { id: call } = await harness.upstream.waitForRequest('hang-after')
    await remove(app, what === 'response' ? `/v1/responses/${id}` : `/v1/conversations/${created.id}`)
    expect((await harness.upstream.waitForEnd(call)).endedBy).toBe('client')
    expect(await find()).toEqual([])
    await app.service.close()
    expect(await find().catch(() => [])).toEqual([])
  })
})
