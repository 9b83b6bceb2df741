/**
 * Tests that a response leaves no byte in the data directory or in PostgreSQL's tables unless it is stored.
 */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { GREETER, readEvents } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { makeFolder } from '../../support/process.ts'
import { findText, storingAgent } from '../../support/stored-chats.ts'

const harness = await startChatHarness()
/** A text that occurs nowhere else. */
const CANARY = 'zq7canaryXv94'
const FORBIDDEN = { PARLEY_CONVERSATIONS: 'forbidden' }

interface Unstored {
  /** Undefined for a request without an agent. */
  readonly yaml?: string
  readonly env?: Readonly<Record<string, string>>
  readonly more?: object
  readonly headers?: Readonly<Record<string, string>>
}

async function start({ yaml, env = {}, more = {}, headers = {} }: Unstored) {
  const dataDir = join(await makeFolder(), 'data')
  const app = await harness.start({ ...env, PARLEY_DATA_DIR: dataDir })
  const key = yaml === undefined ? app.key : (await app.createAgent(yaml)).agent_key
  const input = `${CANARY} {{up:reasoning ${CANARY}}}`
  const respond = (also: object = {}) =>
    app.call('POST', '/v1/responses', {
      ...{ key, headers },
      body: { model: 'up-chat', input, instructions: CANARY, metadata: { a: CANARY }, ...more, ...also },
    })
  return { app, key, respond, find: () => findText(app, dataDir, CANARY) }
}

const idempotent = { headers: { 'Idempotency-Key': CANARY } }
const storing = storingAgent()
const withoutAgent = (setting: string) => ({ env: { PARLEY_STORE_WITHOUT_AGENT: setting } })

describe('a response is not stored and cannot be retrieved if', () => {
  test.each<[what: string, unstored: Unstored]>([
    ['its agent does not store conversations', { yaml: GREETER }],
    [
      'it asks for storage, but its agent does not store conversations',
      { yaml: GREETER, more: { store: true } },
    ],
    [
      'it has an idempotency key, but its agent does not store conversations',
      { yaml: GREETER, ...idempotent },
    ],
    ['it contains `store: false`', { yaml: storing, more: { store: false } }],
    [
      'it contains `store: false` and an idempotency key',
      { yaml: storing, more: { store: false }, ...idempotent },
    ],
    ['the operator forbids storage', { yaml: storing, env: FORBIDDEN }],
    [
      'it asks for storage, but the operator forbids storage',
      { yaml: storing, env: FORBIDDEN, more: { store: true } },
    ],
    ['it asks for storage, but has no agent', { more: { store: true } }],
    [
      'it has no agent and does not ask for storage (PARLEY_STORE_WITHOUT_AGENT: on_request)',
      withoutAgent('on_request'),
    ],
    ['it has no agent, and contains `store: false`', { ...withoutAgent('default'), more: { store: false } }],
  ])('%s', async (_what, unstored) => {
    const { app, key, respond, find } = await start(unstored)
    const whole = await respond()
    expect([whole.status, whole.body.store]).toEqual([200, false])
    expect(whole.text).toContain(CANARY)
    const streamed = await respond({ stream: true })
    expect(readEvents(streamed.text).events.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { store: false },
    })
    for (const { headers } of [whole, streamed])
      expect([...headers.keys()].filter((name) => /^x-parley-(stored|turn|conv)/.test(name))).toEqual([])
    expect((await app.call('GET', `/v1/responses/${whole.body.id}`, { key })).status).toBe(404)
    const background = await respond({ background: true })
    expect([background.status, background.body.error.code]).toEqual([400, 'conversations_off'])
    expect(await find()).toEqual([])
    await app.service.close()
    expect(await find().catch(() => [])).toEqual([])
  })
})

test.each<[what: string, stored: Unstored]>([
  ['its agent stores conversations', { yaml: storing }],
  [
    'it has no agent and asks for storage (PARLEY_STORE_WITHOUT_AGENT: on_request)',
    { ...withoutAgent('on_request'), more: { store: true } },
  ],
  ['it has no agent, and responses are stored by default', withoutAgent('default')],
])('a response is stored if %s', async (_what, stored) => {
  const { app, key, respond, find } = await start(stored)
  const { body, headers } = await respond()
  expect([body.store, headers.get('x-parley-stored')]).toEqual([true, 'true'])
  expect((await app.call('GET', `/v1/responses/${body.id}`, { key })).body).toEqual(body)
  expect(await find()).not.toEqual([])
})
