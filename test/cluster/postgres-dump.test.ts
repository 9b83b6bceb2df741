/** Tests which conversation texts a PostgreSQL dump contains. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { chatRequest, startChatHarness } from '../support/chat-harness.ts'
import { maintain, STORING } from '../support/conversations.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { getProgram } from '../support/programs.ts'

const harness = await startChatHarness()
const CANARY = 'quokka7732'
const DAY = 86_400

async function start(env: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock()
  const databaseUrl = await createTestDatabase()
  const app = await harness.start({ ...env, DATABASE_URL: databaseUrl }, { clock })
  const { agent_id: id } = await app.createAgent(STORING)
  /**
   * Sends the canary, which the model repeats, in a chat and in a response; returns the paths of the stored
   * data.
   */
  const send = async (more: object = {}) => {
    const input = `${CANARY} {{up:tool f {"a":"${CANARY}"}}}`
    const model = `agent/${id}`
    const chat = await app.call('POST', '/v1/chat/completions', {
      body: chatRequest(input, { model, ...more }),
    })
    const body = { model, input, instructions: CANARY, metadata: { a: CANARY }, ...more }
    const response = await app.call('POST', '/v1/responses', { body })
    expect([chat.status, response.status]).toEqual([200, 200])
    return [
      `/v1/conversations/${chat.headers.get('x-parley-conversation')}`,
      `/v1/responses/${response.body.id}`,
    ]
  }
  return { app, clock, send, hasCanary: () => dumpContains(databaseUrl) }
}

/** Returns whether a dump contains the canary, as text or in binary data. */
async function dumpContains(databaseUrl: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)(getProgram('pg_dump'), [databaseUrl], {
    maxBuffer: 64 * 1024 * 1024,
  })
  expect(stdout).toContain('COPY public.turn_events')
  return stdout.includes(CANARY) || stdout.includes(Buffer.from(CANARY).toString('hex'))
}

test('a database dump contains stored text only until its conversation and response are deleted', async () => {
  const { app, send, hasCanary } = await start()
  const [conversation, response] = await send()
  for (const path of [conversation, response]) {
    expect(await hasCanary()).toBe(true)
    expect((await app.call('DELETE', path as string)).status).toBe(200)
  }
  expect(await hasCanary()).toBe(false)
})

test('a database dump contains stored text only until it expires', async () => {
  const { app, clock, send, hasCanary } = await start()
  await send()
  expect(await hasCanary()).toBe(true)
  clock.advance(31 * DAY)
  await maintain(app)
  expect(await hasCanary()).toBe(false)
})

test('a database dump contains no text from requests with `store: false` or while the operator forbids storage', async () => {
  const unstored = await start()
  await unstored.send({ store: false })
  expect(await unstored.hasCanary()).toBe(false)
  const forbidden = await start({ PARLEY_CONVERSATIONS: 'forbidden' })
  await forbidden.send({ store: true })
  expect(await forbidden.hasCanary()).toBe(false)
})
