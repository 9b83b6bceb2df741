/** Tests the prices that administrators set while the server runs. */
import { describe, expect, test } from 'vitest'
import { asAdmin, root, startAdminApp } from '../../support/admin.ts'
import type { Answer, CallOptions, TestApp } from '../../support/app.ts'
import { auditRowsOf, failAuditInserts } from '../../support/audit.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { asUser } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { startMeteredProvider } from '../../support/metered-provider.ts'
import type { PricedCall } from '../../support/prices.ts'
import { recompute } from '../../support/prices.ts'
import { callProcedure } from '../../support/rpc.ts'
import { sendChat } from '../../support/usage.ts'

const NOON = Date.UTC(2026, 10, 20, 12) / 1000
const usage = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 }
const cheap = { per_million: { input: 1, output: 1 } }
const dear = { per_million: { input: '10', output: '20' }, per_call: 0.001 }
const shown = { per_million: { input: '10', output: '20' }, per_call: '0.001' }

/** Starts a server whose configuration sets the price of `metered`, but not that of `spare`. */
async function startPriced(clock = createFakeClock(NOON)): Promise<TestApp> {
  const provider = await startMeteredProvider(() => ({ usage }))
  const prices = `prices:\n  gateway/metered: [${JSON.stringify(cheap)}]\n`
  const env = { PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: provider.url }
  return startAdminApp({ ...env, PARLEY_CONFIG: await writeConfigFile(prices) }, { clock })
}

const path = (model: string, provider = 'gateway') => `/prices/${provider}/${model}`
const setPrice = (app: TestApp, model: string, body: unknown, provider?: string) =>
  asAdmin(app, 'PUT', path(model, provider), { body })
const readPrice = async (app: TestApp, model: string) =>
  (await app.call('GET', `/v1/prices?model=${model}`)).body
const readTable = async (app: TestApp, query = '') => (await asAdmin(app, 'GET', `/prices${query}`)).body
const idsOf = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id)
const errorOf = ({ status, body }: Answer) => [status, body.error.param]
const chat = (app: TestApp, model: string) => sendChat(app, 'hello', { model })
const listCalls = async (app: TestApp): Promise<PricedCall[]> =>
  (await app.call('GET', '/v1/usage/calls')).body.data

describe('a price that an administrator sets', () => {
  test('takes precedence over the configuration from the next request until it is deleted', async () => {
    const app = await startPriced()
    const { status, body } = await setPrice(app, 'metered', dear)
    expect([status, body]).toEqual([
      200,
      {
        ...{ object: 'price_override', provider: 'gateway', model: 'metered', entries: [shown] },
        ...{ updated_by: root, updated_at: NOON },
      },
    ])
    expect((await chat(app, 'metered')).headers.get('x-parley-cost')).toBe('0.013000000')
    expect(await readPrice(app, 'metered')).toMatchObject({
      ...{ priced: true, source: 'override', entry: shown, date: '2026-11-20' },
    })
    const deleted = await asAdmin(app, 'DELETE', path('metered'))
    expect([deleted.status, deleted.body]).toEqual([
      200,
      { provider: 'gateway', model: 'metered', deleted: true },
    ])
    expect((await chat(app, 'metered')).headers.get('x-parley-cost')).toBe('0.001100000')
    expect(await readPrice(app, 'metered')).toMatchObject({ source: 'config', date: null })
    expect(errorOf(await asAdmin(app, 'DELETE', path('metered')))).toEqual([404, 'model'])
  })

  test('gives a price to an unpriced model and to a mock model', async () => {
    const app = await startPriced()
    expect(await readPrice(app, 'spare')).toMatchObject({ priced: false, source: null, date: null })
    await setPrice(app, 'spare', cheap)
    expect((await chat(app, 'spare')).headers.get('x-parley-cost')).toBe('0.001100000')
    const mock = await startAdminApp()
    await setPrice(mock, 'mock', { ...cheap, per_call: 1 }, 'mock')
    const { body } = await sendChat(mock, 'hello', { model: 'mock' })
    expect(body.usage.cost).toBeGreaterThan(1)
  })

  test('may have several entries that apply from different times', async () => {
    const clock = createFakeClock(NOON)
    const app = await startPriced(clock)
    const later = { ...dear, since: '2026-11-20T12:00:01Z' }
    const { body } = await setPrice(app, 'metered', { entries: [cheap, later] })
    expect(body.entries).toHaveLength(2)
    await chat(app, 'metered')
    clock.advance(1)
    await chat(app, 'metered')
    expect((await listCalls(app)).map(({ cost }) => cost)).toEqual(['0.013', '0.0011'])
    expect(await readPrice(app, 'metered')).toMatchObject({ source: 'override', date: '2026-11-20' })
  })

  test('can change between calls that are a millisecond apart, whose costs can both be recomputed', async () => {
    const clock = createFakeClock(NOON)
    const app = await startPriced(clock)
    await setPrice(app, 'metered', { entries: [cheap, { ...dear, since: '2026-11-20T12:00:00.001Z' }] })
    await chat(app, 'metered')
    clock.advance(0.001)
    await chat(app, 'metered')
    const calls = await listCalls(app)
    expect(calls.map(({ cost }) => cost)).toEqual(['0.013', '0.0011'])
    const snapshots = await app.service.deps.db.selectFrom('price_snapshots').selectAll().execute()
    expect(calls.map((call) => recompute(call, snapshots))).toEqual(['0.013', '0.0011'])
  })

  test('does not apply before the start of its only entry', async () => {
    const app = await startPriced()
    await setPrice(app, 'metered', { ...dear, since: '2026-11-21' })
    expect(await readPrice(app, 'metered')).toMatchObject({ source: 'config' })
  })

  test('can be set for a model whose id contains slashes, encoded or not', async () => {
    const app = await startAdminApp()
    for (const [written, model] of [
      ['openai/gpt-5', 'openai/gpt-5'],
      ['meta%2Fllama:free', 'meta/llama:free'],
      ['50%25', '50%'],
    ] as const) {
      const { status, body } = await setPrice(app, written, cheap, 'far')
      expect([status, body.provider, body.model]).toEqual([200, 'far', model])
      expect(idsOf(await readTable(app, '?source=override'))).toEqual([`far/${model}`])
      expect((await asAdmin(app, 'DELETE', path(written, 'far'))).body).toMatchObject({ model })
    }
  })

  test('can be set and deleted with typed procedures', async () => {
    const app = await startPriced()
    const call = (name: string, input: object) => callProcedure(app, name, input, asUser(root))
    const model = { provider: 'gateway', model: 'metered' }
    expect((await call('prices.set', { ...model, ...dear })).status).toBe(200)
    const { body } = await call('prices.list', { source: 'override' })
    expect(idsOf(body.result.data.json)).toEqual(['gateway/metered'])
    expect((await call('prices.remove', model)).status).toBe(200)
    expect(await readPrice(app, 'metered')).toMatchObject({ source: 'config' })
  })

  test('is recorded in the audit log with the previous price, or is not set if that fails', async () => {
    const app = await startPriced()
    await readTable(app)
    const rows = await auditRowsOf(app, async () => {
      await setPrice(app, 'metered', cheap)
      await setPrice(app, 'metered', dear)
      await asAdmin(app, 'DELETE', path('metered'))
    })
    const before = [{ per_million: { input: '1', output: '1' } }]
    expect(
      rows.map(({ action, target_id, actor, details }) => [action, target_id, actor, JSON.parse(details)]),
    ).toEqual([
      ['price.set', 'gateway/metered', root, { entries: before }],
      ['price.set', 'gateway/metered', root, { entries: [shown], before }],
      ['price.delete', 'gateway/metered', root, { before: [shown] }],
    ])
    await failAuditInserts(app)
    expect((await setPrice(app, 'metered', dear)).status).toBe(500)
    expect(await readPrice(app, 'metered')).toMatchObject({ source: 'config' })
  })

  test.each([
    [{}, 'per_million'],
    [{ per_million: {} }, 'per_million.input'],
    [{ per_million: { input: -1 } }, 'per_million.input'],
    [{ per_million: { input: '1.0000000001' } }, 'per_million.input'],
    [{ per_million: { input: 1, outpt: 2 } }, 'per_million'],
    [{ ...cheap, since: '2026-02-30' }, 'since'],
    [{ ...cheap, tiers: { flex: 0 } }, 'tiers.flex'],
    [{ ...cheap, entries: [cheap] }, 'per_million'],
    [{ entries: [] }, 'entries'],
    [{ entries: [cheap, cheap] }, 'entries'],
    [{ entries: [{ per_million: { input: 'much' } }] }, 'entries[0].per_million.input'],
    [{ ...cheap, model: 'other' }, 'model'],
  ])('is rejected with the name of an invalid field: %j', async (body, param) => {
    const app = await startAdminApp()
    expect(errorOf(await setPrice(app, 'metered', body))).toEqual([400, param])
  })

  test('is rejected for an invalid provider or model name', async () => {
    const app = await startAdminApp()
    expect(errorOf(await setPrice(app, 'metered', cheap, 'Far!'))).toEqual([400, 'provider'])
    expect(errorOf(await setPrice(app, 'a%0Ab', cheap))).toEqual([400, 'model'])
    expect(errorOf(await setPrice(app, 'metered/', cheap))).toEqual([400, 'model'])
    expect(errorOf(await setPrice(app, 'm'.repeat(301), cheap))).toEqual([400, 'model'])
  })

  test('can be set for at most 500 models', async () => {
    const app = await startAdminApp()
    const row = { entry: '[{"per_million":{"input":"1"}}]', updated_by: root, updated_at: NOON }
    const rows = Array.from({ length: 500 }, (_, index) => ({ provider: 'far', model: `m${index}`, ...row }))
    await app.service.deps.db.insertInto('price_overrides').values(rows).execute()
    expect((await setPrice(app, 'm500', cheap, 'far')).status).toBe(409)
    expect((await setPrice(app, 'm499', cheap, 'far')).status).toBe(200)
  })

  test('can only be set, listed and deleted by administrators', async () => {
    const app = await startPriced()
    for (const options of [{ key: app.key }, { key: null }, asUser('other@example.org')] as CallOptions[])
      for (const [method, place] of [
        ['GET', '/prices'],
        ['PUT', path('metered')],
        ['DELETE', path('metered')],
      ] as const) {
        const { status } = await app.call(method, `/v1/manager/admin${place}`, {
          ...options,
          ...(method === 'PUT' ? { body: cheap } : {}),
        })
        expect([401, 403]).toContain(status)
      }
    expect(await readPrice(app, 'metered')).toMatchObject({ source: 'config' })
  })
})

describe('a stored cost', () => {
  test('can be recomputed from its snapshot after the price was replaced and deleted', async () => {
    const app = await startPriced()
    await chat(app, 'metered')
    await setPrice(app, 'metered', dear)
    await chat(app, 'metered')
    await setPrice(app, 'metered', { ...dear, per_million: { input: '0.000000001', output: '3.333333333' } })
    await chat(app, 'metered')
    await asAdmin(app, 'DELETE', path('metered'))
    await chat(app, 'metered')
    const calls = await listCalls(app)
    const snapshots = await app.service.deps.db.selectFrom('price_snapshots').selectAll().execute()
    expect(calls.map(({ cost }) => cost)).toEqual(['0.0011', '0.001333334', '0.013', '0.0011'])
    expect(calls.map((call) => recompute(call, snapshots))).toEqual(calls.map(({ cost }) => cost))
    expect(new Set(calls.map(({ price_id }) => price_id)).size).toBe(3)
  })
})

describe('GET /v1/manager/admin/prices', () => {
  test('lists models that were called without a price first, and then all models by id', async () => {
    const app = await startPriced()
    await setPrice(app, 'old', dear, 'far')
    await chat(app, 'spare')
    await chat(app, 'spare')
    await listCalls(app)
    const { data, has_more } = await readTable(app)
    expect(has_more).toBe(false)
    expect(data.map(({ id, source }: Record<string, unknown>) => [id, source]).slice(0, 1)).toEqual([
      ['gateway/spare', null],
    ])
    const others = idsOf({ data: data.slice(1) })
    expect(others).toEqual(others.toSorted())
    expect(data[0]).toEqual({
      ...{ id: 'gateway/spare', provider: 'gateway', model: 'spare', source: null, price_id: null },
      ...{ entry: null, date: null, unpriced_requests: 2, override: null, meter: null },
    })
    expect(data.find(({ id }: { id: string }) => id === 'far/old')).toMatchObject({
      ...{ source: 'override', entry: shown, date: '2026-11-20', unpriced_requests: 0 },
      override: { entries: [shown], updated_by: root },
    })
  })

  test('can be filtered by text and by source, and is paginated', async () => {
    const app = await startPriced()
    for (const model of ['a', 'b', 'c']) await setPrice(app, model, cheap, 'far')
    expect(idsOf(await readTable(app, '?q=FAR'))).toEqual(['far/a', 'far/b', 'far/c'])
    expect(idsOf(await readTable(app, '?source=config'))).toEqual(['gateway/metered'])
    const first = await readTable(app, '?source=override&limit=2')
    expect([idsOf(first), first.has_more]).toEqual([['far/a', 'far/b'], true])
    const second = await readTable(app, '?source=override&limit=2&after=far/b')
    expect([idsOf(second), second.has_more]).toEqual([['far/c'], false])
    for (const [query, param] of [
      ['?after=far/x', 'after'],
      ['?source=else', 'source'],
      ['?limit=201', 'limit'],
    ] as const)
      expect(errorOf(await asAdmin(app, 'GET', `/prices${query}`))).toEqual([400, param])
  })

  test('no longer lists a model first once it has a price', async () => {
    const app = await startPriced()
    await chat(app, 'spare')
    await listCalls(app)
    expect(idsOf(await readTable(app, '?source=none'))).toContain('gateway/spare')
    await setPrice(app, 'spare', cheap)
    const [first] = (await readTable(app)).data
    expect(first.id).toBe('gateway/metered')
  })
})
