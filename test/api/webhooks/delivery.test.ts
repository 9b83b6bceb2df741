/** Tests how deliveries to webhooks are signed and repeated, and when a webhook is disabled. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { storeChat } from '../../support/conversations.ts'
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import {
  allowLoopback,
  createWebhook,
  deliverDue,
  type Receiver,
  startReceiver,
  verify,
  withStatus,
} from '../../support/webhook-receiver.ts'

const HOUR = 3600
const DAY = 24 * HOUR
const events = ['conversation.created']
/** The delays before the second to the eighth attempt, in seconds. */
const waits = [5, 300, 1800, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR]

async function startWithWebhook(fields: object = {}) {
  const clock = createFakeClock()

  const app = await startApp(allowLoopback, { clock })
  const receiver = await startReceiver()
  const webhook = await createWebhook(app, { url: receiver.url, events, ...fields })
  const { agent_id: agentId } = await app.createAgent(storingAgent())
  return { app, clock, receiver, webhook, agentId }
}

const readWebhook = async (app: TestApp, id: string) => (await app.call('GET', `/v1/webhooks/${id}`)).body
const listDeliveries = async (app: TestApp, id: string) =>
  (await app.call('GET', `/v1/webhooks/${id}/deliveries`)).body.data

/**
 * Advances the clock by `step` seconds at a time until another delivery arrives; returns the seconds that
 * have passed.
 */
async function waitForNext(app: TestApp, clock: FakeClock, receiver: Receiver, most: number, step = 1) {
  const before = receiver.received.length
  for (let waited = 0; waited <= most; waited += step) {
    await deliverDue(app)
    if (receiver.received.length > before) return waited
    clock.advance(step)
  }
  throw new Error('no delivery arrived')
}

describe('a delivery', () => {
  test('is signed, and contains no text by default', async () => {
    const { app, receiver, webhook, agentId } = await startWithWebhook()
    const conversationId = await storeChat(app, agentId, 'a canary in the text')
    await deliverDue(app)
    expect(receiver.received).toHaveLength(1)
    const [only] = receiver.received
    expect(only?.body).toEqual({
      type: 'conversation.created',
      timestamp: '2027-01-15T08:00:00Z',
      data: {
        ...{ conversation_id: conversationId, url: null, agent_id: agentId, mode: 'model', revision: 0 },
        ...{ channel: 'api', visitor_id: null },
      },
    })
    expect(verify(webhook.secret, only as never)).toEqual(only?.body)
    expect(only?.headers['webhook-id']).toMatch(/^whd_[0-9A-Za-z]{24}$/)
    expect(await listDeliveries(app, webhook.id)).toMatchObject([
      { id: only?.id, state: 'delivered', attempts: 1, last_status: 204, next_at: null, body: only?.text },
    ])
  })

  test('is retried on schedule, with the same id and body, until the receiver succeeds after seven failures', async () => {
    const { app, clock, receiver, webhook, agentId } = await startWithWebhook()
    receiver.answerNext(...Array(7).fill(withStatus(500)))
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    for (const wait of waits) {
      clock.advance(wait - 1)
      await deliverDue(app)
      const seen = receiver.received.length
      clock.advance(1 + Math.ceil(wait / 10))
      await deliverDue(app)
      expect(receiver.received).toHaveLength(seen + 1)
    }
    expect(receiver.received).toHaveLength(8)
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
    expect(new Set(receiver.received.map(({ text }) => text)).size).toBe(1)
    for (const each of receiver.received) expect(verify(webhook.secret, each)).toEqual(each.body)
    expect(await listDeliveries(app, webhook.id)).toMatchObject([{ state: 'delivered', attempts: 8 }])
    expect(await readWebhook(app, webhook.id)).toMatchObject({ state: 'enabled', failing_since: null })
  })

  test('fails permanently after ten attempts, and can then be repeated on request', async () => {
    const { app, clock, receiver, webhook, agentId } = await startWithWebhook()
    receiver.answerNext(...Array(10).fill(withStatus(503)))
    await storeChat(app, agentId, 'hello')
    for (const wait of [0, ...waits, 20 * HOUR, 24 * HOUR, 24 * HOUR]) {
      clock.advance(Math.ceil(wait * 1.1))
      await deliverDue(app)
    }
    expect(receiver.received).toHaveLength(10)
    const [failed] = await listDeliveries(app, webhook.id)
    expect(failed).toMatchObject({
      ...{ attempts: 10, next_at: null, last_status: 503, state: 'failed' },
    })
    const retry = await app.call('POST', `/v1/webhooks/${webhook.id}/deliveries/${failed.id}/retry`)
    expect([retry.status, retry.body.state]).toEqual([200, 'pending'])
    await deliverDue(app)
    expect(receiver.received.map(({ id }) => id)).toEqual(Array(11).fill(failed.id))
    expect(await listDeliveries(app, webhook.id)).toMatchObject([{ state: 'delivered', attempts: 1 }])
  })

  test('is retried after the time in Retry-After', async () => {
    const { app, clock, receiver, agentId } = await startWithWebhook()
    receiver.answerNext(withStatus(429, { 'Retry-After': '120' }))
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    expect(await waitForNext(app, clock, receiver, 200)).toBe(120)
  })

  test('does not succeed if the receiver answers with a redirect, which is not followed', async () => {
    const { app, receiver, webhook, agentId } = await startWithWebhook()
    const other = await startReceiver()
    receiver.answerNext(withStatus(307, { Location: other.url }))
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    expect(other.received).toEqual([])
    expect(await listDeliveries(app, webhook.id)).toMatchObject([
      { state: 'pending', last_status: 307, last_error: 'The receiver responded with a redirect (307).' },
    ])
  })

  test('succeeds even if the response is endless', async () => {
    const { app, receiver, webhook, agentId } = await startWithWebhook()
    receiver.answerNext((response) => {
      response.writeHead(200)
      const write = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384)));
        if (!response.destroyed) response.once('drain', write)
      }
      write()
    })
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    expect(await listDeliveries(app, webhook.id)).toMatchObject([{ state: 'delivered', last_status: 200 }])
  })
})

describe('a webhook', () => {
  test('is disabled when its receiver answers with 410', async () => {
    const { app, clock, receiver, webhook, agentId } = await startWithWebhook()
    receiver.answerNext(withStatus(410))
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    expect(await readWebhook(app, webhook.id)).toMatchObject({ state: 'disabled', disabled_reason: 'gone' })
    await storeChat(app, agentId, 'hello again')
    clock.advance(DAY)
    await deliverDue(app)
    expect(receiver.received).toHaveLength(1)
    const [delivery] = await listDeliveries(app, webhook.id)
    expect(delivery).toMatchObject({ state: 'failed', next_at: null })
    const retry = await app.call('POST', `/v1/webhooks/${webhook.id}/deliveries/${delivery.id}/retry`)
    expect([retry.status, retry.body.error.code]).toEqual([409, 'webhook_disabled'])
  })

  test('is disabled after five days of failures, and receives events again once it is enabled', async () => {
    const { app, clock, receiver, webhook, agentId } = await startWithWebhook()
    receiver.status = 500
    for (let day = 0; day <= 5; day++) {
      await storeChat(app, agentId, 'hello')
      await deliverDue(app)
      const expected = day < 5 ? 'enabled' : 'disabled'
      expect(await readWebhook(app, webhook.id)).toMatchObject({ state: expected })
      clock.advance(DAY)
    }
    const attempts = receiver.received.length
    await deliverDue(app)
    expect(receiver.received).toHaveLength(attempts)
    expect(await readWebhook(app, webhook.id)).toMatchObject({ disabled_reason: 'failing' })
    receiver.status = 204
    await app.call('PUT', `/v1/webhooks/${webhook.id}`, { body: { url: receiver.url, events } })
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    expect(await readWebhook(app, webhook.id)).toMatchObject({ state: 'enabled', disabled_reason: null })
    expect(receiver.received).toHaveLength(attempts + 1)
  })

  test('signs events with both secrets for 24 hours after a rotation', async () => {
    const { app, clock, receiver, webhook, agentId } = await startWithWebhook()
    const { body: rotated } = await app.call('POST', `/v1/webhooks/${webhook.id}/rotate-secret`)
    expect(rotated.secret).toMatch(/^whsec_/)
    expect(rotated.secret).not.toBe(webhook.secret)
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    clock.advance(DAY + 1)
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    const [during, after] = receiver.received as [never, never]
    for (const secret of [webhook.secret, rotated.secret]) verify(secret, during)
    verify(rotated.secret, after)
    expect(() => verify(webhook.secret, after)).toThrow('No matching signature')
  })

  test('receives a test event only once even if it fails, and the test request returns the result', async () => {
    const { app, receiver, webhook } = await startWithWebhook()
    receiver.answerNext(withStatus(500))
    const failed = await app.call('POST', `/v1/webhooks/${webhook.id}/test`)
    expect([failed.status, failed.body]).toEqual([
      200,
      expect.objectContaining({ type: 'webhook.test', state: 'failed', last_status: 500, next_at: null }),
    ])
    const { body: succeeded } = await app.call('POST', `/v1/webhooks/${webhook.id}/test`)
    expect(succeeded).toMatchObject({ state: 'delivered', last_status: 204, attempts: 1 })
    expect(succeeded.duration_ms).toEqual(expect.any(Number))
    expect(receiver.received.map(({ body }) => body.data)).toEqual(Array(2).fill({ webhook_id: webhook.id }))
    expect(await readWebhook(app, webhook.id)).toMatchObject({ failing_since: null })
  })
})
