/** Tests that the operator's webhooks report called models without a price. */
import { expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { startMeteredProvider } from '../../support/metered-provider.ts'
import { ownerOf, sendChat } from '../../support/usage.ts'
import { deliverDue, startReceiver } from '../../support/webhook-receiver.ts'

async function start() {
  const receiver = await startReceiver()
  const provider = await startMeteredProvider(() => ({}))
  const settings = {
    providers: { far: { url: provider.url } },
    prices: { 'far/metered': [{ per_million: { input: 1, output: 1 } }] },
    webhooks: [
      { url: receiver.url, secret: `whsec_${btoa('a secret of 32 bytes for tests..')}`, events: ['price.*'] },
    ],
  }
  const clock = createFakeClock()
  const PARLEY_CONFIG = await writeConfigFile(JSON.stringify(settings))
  const app = await startApp({ PARLEY_CONFIG }, { clock })
  const listReported = async () => {
    // Waits until the calls and their events are stored.
    await app.call('GET', '/v1/usage')
    await deliverDue(app)
    return receiver.received.map(({ body }) => [body.type, body.data])
  }
  return { app, clock, listReported }
}

const chat = (app: TestApp, model: string) => sendChat(app, 'hello', { model })
const spare = ['price.missing', { provider: 'far', model: 'spare' }]

test('a model without a price is reported once a day, and models with a price are not reported', async () => {
  const { app, clock, listReported } = await start()
  for (const model of ['far/metered', 'far/spare', 'far/spare']) await chat(app, model)
  expect(await listReported()).toEqual([spare])
  clock.advance(86_400)
  await chat(app, 'far/spare')
  expect(await listReported()).toEqual([spare, spare])
})

test('a budget that rejects a model without a price reports it', async () => {
  const { app, listReported } = await start()
  const scope = { type: 'key', id: ownerOf(app).tenantId }
  await app.call('POST', '/v1/budgets', { body: { scope, unit: 'usd', period: 'day', limit: '5' } })
  const { status, body } = await chat(app, 'far/spare')
  expect([status, body.error.code]).toEqual([403, 'model_not_priced'])
  expect(await listReported()).toEqual([spare])
})
