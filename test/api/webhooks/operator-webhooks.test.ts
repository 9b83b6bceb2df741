/** Tests the operator's webhooks, which are in the configuration file. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { ownerOf } from '../../support/usage.ts'
import {
  allowLoopback,
  createWebhook,
  deliverDue,
  startReceiver,
  verify,
  withStatus,
} from '../../support/webhook-receiver.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

async function start(events: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const receiver = await startReceiver()
  const webhooks = [{ url: receiver.url, secret: `\${HOOK_SECRET}`, events }]
  const PARLEY_CONFIG = await writeConfigFile(JSON.stringify({ webhooks }))
  const clock = createFakeClock()
  const app = await startApp(
    { PARLEY_CONFIG, PARLEY_BACKEND: 'mock', HOOK_SECRET: SECRET, ...env },
    { clock },
  )
  return { app, clock, receiver }
}

/** Creates a budget that has reached 50 %. */
async function reachHalf(app: TestApp): Promise<void> {
  const { tenantId } = ownerOf(app)
  const scope = { type: 'key', id: tenantId }
  const { body } = await app.call('POST', '/v1/budgets', { body: { scope, period: 'day', limit: 100 } })
  await app.call('POST', `/v1/budgets/${body.id}/adjustments`, { body: { amount: 50, reason: 'test' } })
}

describe("an operator's webhook", () => {
  test("receives all tenants' budget events at a private address, signed with its secret", async () => {
    const { app, receiver } = await start(['budget.*'])
    await reachHalf(app)
    await deliverDue(app)
    expect(receiver.received).toHaveLength(1)
    const [only] = receiver.received
    const { tenantId } = ownerOf(app)
    expect(only?.body).toMatchObject({
      type: 'budget.threshold_reached',
      data: { parent_key_id: tenantId, scope: { type: 'key', id: tenantId }, threshold: 50 },
    })
    expect(verify(SECRET, only as never)).toEqual(only?.body)
  })

  test('receives an event with the same id until it accepts the event, and remains enabled after failures', async () => {
    const { app, clock, receiver } = await start(['*'])
    receiver.answerNext(withStatus(410), withStatus(500))
    await reachHalf(app)
    for (const seconds of [0, 6, 330]) {
      clock.advance(seconds)
      await deliverDue(app)
    }
    expect(receiver.received).toHaveLength(3)
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
  })

  test('receives violated bounds and missing prices once a day for each model', async () => {
    const { app, clock, receiver } = await start(['budget.bound_violated', 'price.missing'])
    const { outbox } = app.service.deps.budgets
    const report = async () => {
      await outbox.reportMissingPrice('far', 'new-model')
      await outbox.reportBoundViolation({
        ...{ provider: 'far', model: 'liar', kind: 'output', bound: 100, reported: 900 },
      })
    }
    await reachHalf(app)
    await report()
    await report()
    await deliverDue(app)
    const bodies = receiver.received
      .map(({ body }) => body)
      .sort((one, other) => (one.type < other.type ? -1 : 1))
    expect(bodies).toMatchObject([
      {
        type: 'budget.bound_violated',
        data: { provider: 'far', model: 'liar', kind: 'output', bound: 100, reported: 900 },
      },
      { type: 'price.missing', data: { provider: 'far', model: 'new-model' } },
    ])
    clock.advance(86_400)
    await report()
    await deliverDue(app)
    expect(receiver.received).toHaveLength(4)
  })

  test('works even if tenants may not have webhooks', async () => {
    const { app, receiver } = await start(['budget.*'], { PARLEY_WEBHOOKS: 'forbidden' })
    await reachHalf(app)
    await deliverDue(app)
    expect(receiver.received).toHaveLength(1)
  })
})

test("a tenant's webhook cannot receive the operator's events, or use the operator's private host", async () => {
  const { app, receiver } = await start(['budget.*'])
  const body = (events: string[], url = 'https://example.org/hook') => ({ body: { url, events } })
  for (const type of ['budget.bound_violated', 'price.missing', 'budget.*'])
    expect((await app.call('POST', '/v1/webhooks', body([type]))).status).toBe(400)
  const own = await app.call('POST', '/v1/webhooks', body(['budget.exhausted'], receiver.url))
  expect([own.status, own.body.error.param]).toEqual([400, 'url'])
})

test('a tenant and the operator receive an event with the same id', async () => {
  const { app, receiver } = await start(['budget.*'], allowLoopback)
  await createWebhook(app, { url: receiver.url, events: ['budget.threshold_reached'] })
  await reachHalf(app)
  await deliverDue(app)
  expect(receiver.received).toHaveLength(2)
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
})
