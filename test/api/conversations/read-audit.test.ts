/** Tests what the audit log records when conversations are read and when they expire. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import type { TestApp } from '../../support/app.ts'
import { listAuditRows, publicIdOf } from '../../support/audit.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { asUser, behindProxy, revealKey } from '../../support/console.ts'
import { STORING, storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import { callProcedure } from '../../support/rpc.ts'
import { openConversations } from '../../support/stored-chats.ts'
import { allowLoopback, createWebhook, deliverDue, startReceiver } from '../../support/webhook-receiver.ts'

const harness = await startChatHarness()
const CANARY = 'bettong-3381'

const listReads = async (app: TestApp) =>
  (await listAuditRows(app)).filter(({ action }) => action === 'conversation.read')

describe('reading the items of a conversation', () => {
  test('is recorded once per hour for each reader and conversation', async () => {
    const clock = createFakeClock()
    const app = await harness.start(behindProxy, { clock })
    const key = await revealKey(app, 'ada@example.org')
    const { agent_id: id } = await app.createAgent(STORING, key)
    const store = async () => {
      const { body } = await app.call('POST', '/v1/responses', {
        key,
        body: { model: `agent/${id}`, input: CANARY },
      })
      return body.id
    }
    await store()
    await store()
    const { body: list } = await app.call('GET', '/v1/conversations', { key })
    const [two, one] = list.data.map((conversation: { id: string }) => conversation.id)
    expect(await listReads(app)).toEqual([])

    const read = (conversation: string, options: object) =>
      app.call('GET', `/v1/conversations/${conversation}/items`, options)
    const answers = await Promise.all(Array.from({ length: 10 }, () => read(one, { key })))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    const item = answers[0]?.body.data[0]
    expect((await app.call('GET', `/v1/conversations/${one}/items/${item.id}`, { key })).status).toBe(200)
    const byKey = { actor_kind: 'parent_key', actor: publicIdOf(key), tenant: publicIdOf(key) }
    expect(await listReads(app)).toMatchObject([
      { ...byKey, target_id: one, details: `{"agent_id":"${id}"}` },
    ])

    await read(two, { key })
    const readAsUser = () =>
      callProcedure(app, 'conversations.listItems', { conversation_id: one }, asUser('ada@example.org'))
    expect((await readAsUser()).status).toBe(200)
    expect((await readAsUser()).status).toBe(200)
    clock.advance(3_599)
    await read(one, { key })
    expect(await listReads(app)).toMatchObject([
      { ...byKey, target_id: one },
      { ...byKey, target_id: two },
      { actor_kind: 'user', actor: 'ada@example.org', target_id: one },
    ])
    clock.advance(1)
    await read(one, { key })
    const reads = await listReads(app)
    expect(reads).toHaveLength(4)
    expect(reads[3]).toMatchObject({ ...byKey, target_id: one })
    expect(JSON.stringify(await listAuditRows(app))).not.toContain(CANARY)
  })

  test('is not recorded again after a restart, or at all if the conversation does not exist', async () => {
    const clock = createFakeClock()
    const env = { PARLEY_DATA_DIR: join(await makeFolder(), 'data') }
    const app = await harness.start(env, { clock })
    const { agent_id: id } = await app.createAgent(STORING)
    const conversation = await storeChat(app, id, CANARY)
    const path = `/v1/conversations/${conversation}/items`
    expect((await app.call('GET', path)).status).toBe(200)
    expect((await app.call('GET', '/v1/conversations/conv_unknown/items')).status).toBe(404)
    await app.service.close()
    const again = await harness.start({ ...env, PARLEY_PARENT_KEY: app.key }, { clock })
    expect((await again.call('GET', path)).status).toBe(200)
    expect(await listReads(again)).toHaveLength(1)
  })
})

describe('a request that returns conversation text', () => {
  async function startRated() {
    // Uses the system clock, because the feed would poll every millisecond with the fake clock.
    const app = await harness.start(allowLoopback, { clock: systemClock })
    const { agent_id: id } = await app.createAgent(STORING)
    const receiver = await startReceiver()
    const webhook = { url: receiver.url, events: ['conversation.created'] }
    const withText = await createWebhook(app, { ...webhook, include_text: true })
    const withoutText = await createWebhook(app, webhook)
    const conversation = await storeChat(app, id, CANARY)
    await deliverDue(app)
    const db = await openConversations(app)
    const { id: turn } = await db.selectFrom('turns').select('id').executeTakeFirstOrThrow()
    const rating = { value: 'down', comment: CANARY }
    expect((await app.call('PUT', `/v1/turns/${turn}/rating`, { body: rating })).status).toBe(200)
    return { app, agent: id, conversation, turn, withText: withText.id, withoutText: withoutText.id }
  }

  type Rated = Awaited<ReturnType<typeof startRated>>

  async function openFeed({ app, conversation }: Rated) {
    const leaving = new AbortController()
    const url = `${app.url}/v1/conversations/${conversation}/events?cursor=0.0.e`
    const headers = { Authorization: `Bearer ${app.key}` }
    const { body } = await fetch(url, { headers, signal: leaving.signal })
    const reader = (body as ReadableStream<Uint8Array>).getReader()
    let text = ''
    while (!text.includes(CANARY)) {
      const { done, value } = await reader.read()
      if (done) throw new Error(`the feed ended: ${text}`)
      text += Buffer.from(value).toString()
    }
    leaving.abort()
    return { text }
  }

  const reads: readonly [string, (rated: Rated) => Promise<{ readonly text: string }>][] = [
    [
      'the list of turns',
      ({ app, conversation }) => app.call('GET', `/v1/conversations/${conversation}/turns`),
    ],
    ['a turn', ({ app, turn }) => app.call('GET', `/v1/turns/${turn}`)],
    ['the feed', openFeed],
    [
      'the deliveries of a webhook',
      ({ app, withText }) => app.call('GET', `/v1/webhooks/${withText}/deliveries`),
    ],
  ]

  test.each(reads)('is recorded once, even if it is repeated: %s', async (_, read) => {
    const rated = await startRated()
    expect(await listReads(rated.app)).toEqual([])
    for (let count = 0; count < 2; count++) expect((await read(rated)).text).toContain(CANARY)
    expect(await listReads(rated.app)).toMatchObject([
      { actor_kind: 'parent_key', target_id: rated.conversation, details: `{"agent_id":"${rated.agent}"}` },
    ])
    expect(JSON.stringify(await listAuditRows(rated.app))).not.toContain(CANARY)
  })

  test('is recorded if it redelivers a webhook event that includes text', async () => {
    const { app, withText, withoutText, conversation } = await startRated()
    for (const [webhook, reads] of [
      [withoutText, []],
      [withText, [conversation]],
    ] as const) {
      const db = await openConversations(app)
      const { id } = await db
        .selectFrom('webhook_deliveries')
        .select('id')
        .where('webhook_id', '=', webhook)
        .executeTakeFirstOrThrow()
      const path = `/v1/webhooks/${webhook}/deliveries`
      if (webhook === withoutText) expect((await app.call('GET', path)).text).not.toContain(CANARY)
      expect((await app.call('POST', `${path}/${id}/retry`)).status).toBe(200)
      expect((await listReads(app)).map(({ target_id }) => target_id)).toEqual(reads)
    }
  })

  test('is recorded as an export if it exports conversations', async () => {
    const { app, conversation } = await startRated()
    expect((await app.call('GET', '/v1/conversations/export')).text).toContain(CANARY)
    const rows = await listAuditRows(app)
    expect(rows.at(-1)).toMatchObject({ action: 'conversation.export', actor_kind: 'parent_key' })
    expect((await app.call('GET', `/v1/conversations/${conversation}`)).status).toBe(200)
    expect(await listReads(app)).toEqual([])
  })

  test('is not recorded if the conversation does not exist', async () => {
    const { app } = await startRated()
    for (const path of ['turns', 'events', 'items', 'notes'])
      expect((await app.call('GET', `/v1/conversations/conv_unknown/${path}`)).status).toBe(404)
    expect(await listReads(app)).toEqual([])
  })
})

test('the audit log records the number of expired conversations, but not each of them', async () => {
  const clock = createFakeClock()
  const env = { PARLEY_DATA_DIR: join(await makeFolder(), 'data') }
  const app = await harness.start(env, { clock })
  const { agent_id: id } = await app.createAgent(STORING)
  for (let count = 0; count < 3; count++) await storeChat(app, id, `${CANARY} ${count}`)
  await app.service.close()
  clock.advance(31 * 86_400)
  const later = await harness.start({ ...env, PARLEY_PARENT_KEY: app.key }, { clock })
  const listExpiries = async () =>
    (await listAuditRows(later)).filter(({ action }) => action.startsWith('conversation.'))
  await expect.poll(listExpiries).toMatchObject([
    {
      action: 'conversation.expire',
      actor_kind: 'service',
      target_kind: 'key',
      target_id: publicIdOf(app.key),
      details: '{"conversations":3}',
    },
  ])
})
