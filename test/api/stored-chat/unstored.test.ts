/** Tests which chats are stored, and that the others leave no text in the data directory. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { GREETER, type TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { makeFolder } from '../../support/process.ts'
import {
  type ChatOptions,
  findText,
  sendChat,
  splitStream,
  storingAgent,
} from '../../support/stored-chats.ts'

const harness = await startChatHarness()
/** A text that occurs nowhere else. */
const CANARY = 'zq7canaryXv93'

async function startOnDisk(env: Readonly<Record<string, string>> = {}) {
  const dataDir = join(await makeFolder(), 'data')
  return { app: await harness.start({ ...env, PARLEY_DATA_DIR: dataDir }), dataDir }
}

/** Sends the text with and without streaming; returns the names of the storage headers. */
async function sendBoth(app: TestApp, options: ChatOptions): Promise<string[]> {
  const whole = await sendChat(app, CANARY, { ...options, more: { ...options.more, stream: false } })
  const stream = await sendChat(app, CANARY, options)
  expect([whole.status, stream.status]).toEqual([200, 200])
  expect([whole.text, stream.text]).toEqual([
    expect.stringContaining(CANARY),
    expect.stringContaining(CANARY),
  ])
  expect(splitStream(stream.text).filter(({ id }) => id !== undefined)).toEqual([])
  return [...whole.headers.keys(), ...stream.headers.keys()].filter((name) =>
    /^x-parley-(stored|turn|conversation)$/.test(name),
  )
}

describe('a chat is not stored and has no storage headers or event ids if', () => {
  test.each<[what: string, yaml: string, env: Record<string, string>, options: ChatOptions]>([
    ['its agent does not store chats', GREETER, {}, {}],
    ['it asks for storage, but its agent does not store chats', GREETER, {}, { more: { store: true } }],
    ['it contains `store: false`', storingAgent(), {}, { more: { store: false } }],
    ['the operator forbids storage', storingAgent(), { PARLEY_CONVERSATIONS: 'forbidden' }, {}],
    [
      'it asks for storage, but the operator forbids storage',
      storingAgent(),
      { PARLEY_CONVERSATIONS: 'forbidden' },
      { more: { store: true } },
    ],
    [
      'it has an idempotency key, but its agent does not store chats',
      GREETER,
      {},
      { headers: { 'Idempotency-Key': 'k' } },
    ],
  ])('%s', async (_what, yaml, env, options) => {
    const { app, dataDir } = await startOnDisk(env)
    const { agent_key } = await app.createAgent(yaml)
    expect(await sendBoth(app, { ...options, key: agent_key })).toEqual([])
    expect(await findText(app, dataDir, CANARY)).toEqual([])
    await app.service.close()
    expect(await findText(app, dataDir, CANARY).catch(() => [])).toEqual([])
  })

  test.each<[setting: string, more: object]>([
    ['off', { store: true }],
    ['on_request', {}],
    ['on_request', { store: false }],
    ['default', {}],
  ])(
    'it has no agent, PARLEY_STORE_WITHOUT_AGENT is %s and it contains the fields %j',
    async (setting, more) => {
      const { app, dataDir } = await startOnDisk({ PARLEY_STORE_WITHOUT_AGENT: setting })
      expect(await sendBoth(app, { more })).toEqual([])
      expect(await findText(app, dataDir, CANARY)).toEqual([])
    },
  )
})

describe('a chat is stored if', () => {
  test('its agent stores chats', async () => {
    const { app, dataDir } = await startOnDisk()
    const { agent_key } = await app.createAgent(storingAgent())
    const { headers } = await sendChat(app, CANARY, { key: agent_key })
    expect(headers.get('x-parley-stored')).toBe('true')
    expect(headers.get('x-parley-turn')).toMatch(/^turn_[0-9A-Za-z]{24}$/)
    expect(await findText(app, dataDir, CANARY)).not.toEqual([])
  })

  test.each(['on_request', 'default'])(
    'it has no agent, PARLEY_STORE_WITHOUT_AGENT is %s and it contains `store: true`',
    async (setting) => {
      const { app } = await startOnDisk({ PARLEY_STORE_WITHOUT_AGENT: setting })
      const { headers } = await sendChat(app, CANARY, { more: { store: true } })
      expect(headers.get('x-parley-stored')).toBe('true')
    },
  )
})
