/** Tests chats that cannot be stored, because they exceed a limit or the store fails. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, inject, test } from 'vitest'
import type { Clock } from '../../../src/lib/clock.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import {
  type ChatOptions,
  listTurns,
  openConversations,
  sendChat,
  splitStream,
  storingAgent,
} from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const MIB = 1024 * 1024

async function startStoring(env: Readonly<Record<string, string>> = {}, clock?: Clock) {
  const app = await harness.start(env, { ...(clock && { clock }) })
  const { agent_key: key, agent_id: id } = await app.createAgent(storingAgent())
  return { app, key, model: `agent/${id}` }
}

/** Expects that the chat is answered completely, but not stored. */
async function expectUnstored(app: TestApp, text: string, options: ChatOptions): Promise<void> {
  const answer = await sendChat(app, text, options)
  expect([answer.status, answer.headers.get('x-parley-stored')]).toEqual([200, 'false'])
  expect(answer.headers.get('x-parley-turn')).toBeNull()
  expect(splitStream(answer.text).filter(({ id }) => id !== undefined)).toEqual([])
  expect(answer.text).toMatch(options.more === undefined ? /data: \[DONE\]\n\n$/ : /"finish_reason":"stop"/)
}

describe('a chat above PARLEY_CONVERSATIONS_MAX_BYTES', () => {
  test('is answered but not stored', async () => {
    const { app, key } = await startStoring({ PARLEY_CONVERSATIONS_MAX_BYTES: '10' })
    expect((await sendChat(app, 'first', { key })).headers.get('x-parley-stored')).toBe('true')
    await expectUnstored(app, 'second', { key })
    await expectUnstored(app, 'second', { key, more: { stream: false } })
  })

  test('is not stored even if it follows the stored turns immediately', async () => {
    const env = { PARLEY_CONVERSATIONS_MAX_BYTES: '32000' }
    const { app, key } = await startStoring(env, createFakeClock())
    const text = `{{up:text ok}}${'x'.repeat(10_000)}`
    const isStored: unknown[] = []
    for (let count = 0; count < 5; count++)
      isStored.push((await sendChat(app, text, { key })).headers.get('x-parley-stored'))
    expect(isStored).toEqual(['true', 'true', 'true', 'false', 'false'])
  })

  test('returns 507 storage_full if it has an idempotency key', async () => {
    const { app, key } = await startStoring({ PARLEY_CONVERSATIONS_MAX_BYTES: '10' })
    await sendChat(app, 'first', { key })
    const { status, body } = await sendChat(app, 'second', { key, headers: { 'Idempotency-Key': 'k' } })
    expect([status, body.error.code]).toEqual([507, 'storage_full'])
    expect(await harness.listChats()).toHaveLength(1)
  })
})

test('a chat with more than 4 MiB of new messages returns 413 if it must be stored', async () => {
  const { app, model } = await startStoring({ PARLEY_MAX_BODY_BYTES: String(16 * MIB) })
  const messages = Array.from({ length: 8 }, () => ({ role: 'user', content: 'x'.repeat(MIB / 2) }))
  const headers = { 'Idempotency-Key': 'k' }
  const { status, body } = await sendChat(app, '', { headers, more: { model, messages } })
  expect([status, body.error.code]).toEqual([413, 'too_large'])
  expect(body.error.message).toContain('4194304 bytes')
})

describe('while the store fails', () => {
  const fail = async (app: TestApp) => {
    const db = await openConversations(app)
    await sql`alter table turns rename to lost_turns`.execute(db)
    return async () => void (await sql`alter table lost_turns rename to turns`.execute(db))
  }

  test('a chat is answered but not stored', async () => {
    const { app, key } = await startStoring()
    const repair = await fail(app)
    try {
      await expectUnstored(app, 'hello', { key })
      await expectUnstored(app, 'hello', { key, more: { stream: false } })
    } finally {
      await repair()
    }
    expect(await listTurns(app)).toEqual([])
    expect((await sendChat(app, 'hello', { key })).headers.get('x-parley-stored')).toBe('true')
  })

  test.each<[what: string, headers: Record<string, string>]>([
    ['has an idempotency key', { 'Idempotency-Key': 'k' }],
    ['continues a stream', { 'Last-Event-ID': `${'a'.repeat(22)}.0` }],
  ])('a request that %s returns 503', async (_what, headers) => {
    const { app, key } = await startStoring()
    await sendChat(app, 'hello', { key })
    const repair = await fail(app)
    try {
      const { status, body } = await sendChat(app, 'hello', { key, headers })
      expect([status, body.error.code]).toEqual([503, 'service_unavailable'])
      expect(await harness.listChats()).toHaveLength(1)
    } finally {
      await repair()
    }
  })
})

test.skipIf(inject('database') === 'postgres')(
  'a chat is answered but not stored if conversations.db cannot be opened',
  async () => {
    const dataDir = join(await makeFolder(), 'data')
    const { app, key } = await startStoring({ PARLEY_DATA_DIR: dataDir })
    await mkdir(join(dataDir, 'conversations.db'))
    await expectUnstored(app, 'hello', { key })
  },
)

test('a chat whose message contains U+0000 is stored, with a space instead in the title', async () => {
  const { app, key } = await startStoring()
  const answer = await sendChat(app, 'one\u0000two', { key })
  expect([answer.status, answer.headers.get('x-parley-stored')]).toEqual([200, 'true'])
  const { body } = await app.call('GET', '/v1/conversations')
  expect(body.data[0].parley.title).toBe('one two')
})
