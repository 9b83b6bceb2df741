/** Tests which events webhooks receive for changes to conversations, and with which data. */
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { chatRequest } from '../../support/chat-harness.ts'
import { maintain, storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { startMeteredProvider } from '../../support/metered-provider.ts'
import { listTurns, openConversations, storingAgent } from '../../support/stored-chats.ts'
import { beginSession, say } from '../../support/visitors.ts'
import { allowLoopback, createWebhook, deliverDue, startReceiver } from '../../support/webhook-receiver.ts'

const all = ['conversation.created', 'conversation.deleted', 'turn.failed']

async function startWithWebhook(
  fields: object = {},
  env: Readonly<Record<string, string>> = {},
  options: Parameters<typeof startApp>[1] = {},
) {
  const app = await startApp({ ...allowLoopback, ...env }, options)
  const receiver = await startReceiver()
  const webhook = await createWebhook(app, { url: receiver.url, events: all, ...fields })
  const { agent_id: agentId, agent_key: agentKey } = await app.createAgent(storingAgent())
  return { app, receiver, webhook, agentId, agentKey }
}

const deliveriesOf = async (app: TestApp, id: string) =>
  (await app.call('GET', `/v1/webhooks/${id}/deliveries`)).body.data

describe('an event', () => {
  test('is sent when a visitor starts a conversation, with the text if the webhook includes it', async () => {
    const { app, receiver, agentKey, agentId } = await startWithWebhook(
      { include_text: true },
      { PARLEY_PUBLIC_URL: 'https://chat.example.org' },
    )
    const one = await beginSession(app, agentKey)
    const { conversation } = await say(one, 'Where is my order?')
    await deliverDue(app)
    expect(receiver.received.map(({ body }) => body)).toMatchObject([
      {
        type: 'conversation.created',
        data: {
          conversation_id: conversation.id,
          url: `https://chat.example.org/console/conversations/${conversation.id}`,
          ...{ agent_id: agentId, visitor_id: one.id, channel: 'widget', text: 'Where is my order?' },
        },
      },
    ])
  })

  test('has a body of at most 20 KB, however long the text is', async () => {
    const { app, receiver, agentId } = await startWithWebhook({ include_text: true })
    await storeChat(app, agentId, '🦜'.repeat(100_000))
    await deliverDue(app)
    const [{ text, body } = { text: '', body: null }] = receiver.received
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(20_000)
    expect(body.data.text).toMatch(/^(🦜){500}/u)
  })

  test('is sent when a turn fails', async () => {
    const { app, receiver, agentId } = await startWithWebhook()
    const { status } = await app.call('POST', '/v1/chat/completions', {
      body: chatRequest('[[error:500]]', { model: `agent/${agentId}` }),
    })
    expect(status).toBe(502)
    await expect.poll(() => deliverDue(app).then(() => receiver.received.length)).toBe(2)
    expect(receiver.received.map(({ body }) => body.type).sort()).toEqual([
      'conversation.created',
      'turn.failed',
    ])
    const failed = receiver.received.find(({ body }) => body.type === 'turn.failed')
    expect(failed?.body.data).toMatchObject({
      ...{ agent_id: agentId, status: 'failed', error_code: 'backend_error', mode: 'model' },
      turn_id: expect.stringMatching(/^turn_/),
      revision: expect.any(Number),
    })
  })

  test('is sent for a failed turn even if the database rejects the first attempt to read the webhooks', async () => {
    const { log, lines } = createLineLog()
    const clock = createFakeClock()
    const rename = (from: string, to: string) =>
      sql.raw(`alter table ${from} rename to ${to}`).execute(app.service.deps.db)
    const provider = await startMeteredProvider(async () => {
      await expect.poll(() => listTurns(app)).toHaveLength(1)
      await rename('webhooks', 'away')
      // The service caches the webhooks for ten seconds.
      clock.advance(11)
      return { status: 400 }
    })
    const gateway = { PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: provider.url }
    const { app, receiver, agentId } = await startWithWebhook({ events: ['turn.failed'] }, gateway, {
      clock,
      log,
    })
    const answer = app.call('POST', '/v1/chat/completions', {
      body: chatRequest('hello', { model: `agent/${agentId}` }),
    })
    await expect.poll(() => lines.join('')).toContain('could not read webhooks for a failed turn; will retry')
    await rename('away', 'webhooks')
    expect((await answer).status).toBe(400)
    expect(await listTurns(app)).toMatchObject([{ status: 'failed' }])
    await deliverDue(app)
    expect(receiver.received.map(({ body }) => body.type)).toEqual(['turn.failed'])
  })

  test('is sent when a conversation is created over the API, and when it is deleted', async () => {
    const { app, receiver } = await startWithWebhook()
    const { body } = await app.call('POST', '/v1/conversations', { body: {} })
    await deliverDue(app)
    await app.call('DELETE', `/v1/conversations/${body.id}`)
    await deliverDue(app)
    expect(receiver.received.map(({ body: event }) => [event.type, event.data])).toMatchObject([
      ['conversation.created', { conversation_id: body.id, agent_id: null, revision: 0 }],
      ['conversation.deleted', { conversation_id: body.id, revision: 1, reason: 'deleted' }],
    ])
  })

  test('is sent when a conversation expires, and when its agent is deleted', async () => {
    const { app, receiver, agentId } = await startWithWebhook({ events: ['conversation.deleted'] })
    const expired = await storeChat(app, agentId, 'old')
    const db = await openConversations(app)
    await db.updateTable('conversations').set({ last_at: 1, expires_at: 1 }).execute()
    await maintain(app)
    const deleted = await storeChat(app, agentId, 'new')
    await app.call('DELETE', `/v1/agents/${agentId}`)
    await app.call('DELETE', `/v1/bin/agents/${agentId}`)
    await deliverDue(app)
    expect(receiver.received.map(({ body }) => [body.data.conversation_id, body.data.reason])).toEqual([
      [expired, 'expired'],
      [deleted, 'agent_deleted'],
    ])
  })

  test('is sent to the webhooks of its agent and to webhooks without an agent', async () => {
    const { app, receiver, agentId } = await startWithWebhook()
    const { agent_id: otherId } = await app.createAgent(storingAgent())
    const other = await startReceiver()
    await createWebhook(app, { url: other.url, events: all, agent_id: otherId })
    await storeChat(app, agentId, 'one')
    await storeChat(app, otherId, 'two')
    await deliverDue(app)
    expect(other.received.map(({ body }) => body.data.agent_id)).toEqual([otherId])
    expect(receiver.received).toHaveLength(2)
  })
})

describe('deleting a conversation', () => {
  test('also deletes its earlier deliveries, which contain its text', async () => {
    const { app, webhook, agentId } = await startWithWebhook({ include_text: true })
    const id = await storeChat(app, agentId, 'a canary')
    await deliverDue(app)
    expect(JSON.stringify(await deliveriesOf(app, webhook.id))).toContain('a canary')
    await app.call('DELETE', `/v1/conversations/${id}`)
    const rest = await deliveriesOf(app, webhook.id)
    expect(rest.map(({ type }: { type: string }) => type)).toEqual(['conversation.deleted'])
    expect(JSON.stringify(rest)).not.toContain('a canary')
  })
})

test('`conversation.rated` is sent when a turn is rated, without the comment', async () => {
  const { app, receiver, agentId } = await startWithWebhook({ events: ['conversation.rated'] })
  const id = await storeChat(app, agentId, 'Hello')
  const { body: turns } = await app.call('GET', `/v1/conversations/${id}/turns`)
  const turn = turns.data[0].id
  const body = { value: 'down', reason: 'incorrect', comment: 'a canary' }
  expect((await app.call('PUT', `/v1/turns/${turn}/rating`, { body })).status).toBe(200)
  await deliverDue(app)
  expect(receiver.received.map((one) => one.body)).toMatchObject([
    {
      type: 'conversation.rated',
      data: { conversation_id: id, turn_id: turn, source: 'api', value: 'down', reason: 'incorrect' },
    },
  ])
  expect(receiver.received[0]?.text).not.toContain('canary')
})
