/** Tests that cheaper models answer new turns when a budget is used up to a percentage. */
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts'
import {
  type ChatBody,
  type MeteredProvider,
  type Plan,
  startMeteredProvider,
} from '../../support/metered-provider.ts'
import { respond } from '../../support/responses.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import { agentWith, tool } from '../../support/tools.ts'
import { ownerOf, sendChat } from '../../support/usage.ts'
import { beginSession, sayAndWait } from '../../support/visitors.ts'

const harness = await startChatHarness()

const large = { provider: 'gateway', model: 'metered' }
const medium = { provider: 'gateway', model: 'spare' }
const small = { provider: 'gateway', model: 'thrifty' }
const free = { provider: 'play', model: 'mock' }
const LIMIT = 100_000

interface Degrading {
  readonly app: TestApp
  readonly clock: FakeClock
  readonly provider: MeteredProvider
  readonly id: string
  readonly key: string
  /** Sends a chat with the agent key; returns the requested model and the header. */
  ask(more?: object): Promise<{ model: unknown; degraded: string | null; status: number }>
}

/** Creates an agent whose policy has `degrade`. */
async function startDegrading(
  policy: object = { degrade: [{ at: 80, to: small }] },
  { yaml = agentWith([]), plan = () => ({}), more = {}, config = '' }: Settings = {},
): Promise<Degrading> {
  const provider = await startMeteredProvider(plan)
  const providers = `providers:\n  gateway: { url: "${provider.url}" }\n  play: { kind: mock }\n`
  const clock = createFakeClock()
  const app = await startApp(
    { PARLEY_CONFIG: await writeConfigFile(providers + config), PARLEY_BUDGET_WAIT_SECONDS: '0', ...more },
    { clock, tools: { lookup: tool(() => 'found') } },
  )
  const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
  const put = await app.call('PUT', pathOf(id), { body: { default_model: large, ...policy } })
  if (put.status !== 200) throw new Error(put.text)
  const ask = async (fields: object = {}) => {
    const before = provider.requests.length
    const { status, headers } = await sendChat(app, 'hello', { model: undefined, ...fields }, key)
    const model = provider.requests.slice(before).at(-1)?.model
    return { model, degraded: headers.get('x-parley-degraded'), status }
  }
  return { app, clock, provider, id, key, ask }
}

interface Settings {
  readonly yaml?: string
  readonly plan?: (body: ChatBody) => Plan | Promise<Plan>
  readonly more?: Readonly<Record<string, string>>
  readonly config?: string
}

const pathOf = (id: string) => `/v1/agents/${id}/model-policy`

async function createBudget({ app, id }: Degrading, more: object = {}): Promise<string> {
  const body = { scope: { type: 'agent', id }, period: 'day', limit: LIMIT, ...more }
  const { status, text, body: created } = await app.call('POST', '/v1/budgets', { body })
  if (status !== 201) throw new Error(text)
  return created.id
}

/** Sets what the budget has booked. */
async function book(app: TestApp, id: string, amount: number, subject?: string): Promise<void> {
  const { body: budget } = await app.call('GET', `/v1/budgets/${id}`)
  const { body: list } = await app.call('GET', `/v1/budgets/${id}/subjects`)
  const booked =
    subject === undefined
      ? Number(budget.booked)
      : Number(list.data.find((one: { subject: string }) => one.subject === subject)?.booked ?? 0)
  const difference = String(Number((amount - booked).toFixed(9)))
  const body = { amount: difference, reason: 'test', ...(subject !== undefined && { subject }) }
  const { status, text } = await app.call('POST', `/v1/budgets/${id}/adjustments`, { body })
  if (status !== 201) throw new Error(text)
}

const FIRST = { model: 'metered', degraded: null, status: 200 }
const SECOND = { model: 'spare', degraded: 'budget', status: 200 }
const THIRD = { model: 'thrifty', degraded: 'budget', status: 200 }

describe('an agent with `degrade`', () => {
  test('is answered by its first model at 79 %, and by the cheaper model at 80 %', async () => {
    const given = await startDegrading()
    const budget = await createBudget(given)
    await book(given.app, budget, 79_999)
    expect(await given.ask()).toEqual(FIRST)
    await book(given.app, budget, 80_000)
    expect(await given.ask()).toEqual(THIRD)
    expect(await given.ask({ stream: true })).toEqual(THIRD)
    await book(given.app, budget, 79_999)
    expect(await given.ask()).toEqual(FIRST)
  })

  test('is answered by the model of the last step that is reached', async () => {
    const steps = [
      { at: 50, to: medium },
      { at: 80, to: small },
    ]
    const given = await startDegrading({ degrade: steps })
    const budget = await createBudget(given)
    const answers = []
    for (const amount of [49_999, 50_000, 79_000, 80_000]) {
      await book(given.app, budget, amount)
      answers.push(await given.ask())
    }
    expect(answers).toEqual([FIRST, SECOND, SECOND, THIRD])
  })

  test('is answered by its first model without a budget', async () => {
    const { ask } = await startDegrading()
    expect(await ask()).toEqual(FIRST)
  })

  test('is answered by the cheaper model when any of its budgets reaches the step', async () => {
    const given = await startDegrading()
    await createBudget(given)
    const month = await createBudget(given, { period: 'month' })
    const ofKey = { scope: { type: 'key', id: ownerOf(given.app).tenantId }, mode: 'observe' }
    const observing = await createBudget(given, ofKey)
    expect(await given.ask()).toEqual(FIRST)
    await book(given.app, month, 80_000)
    expect(await given.ask()).toEqual(THIRD)
    await book(given.app, month, 0)
    expect(await given.ask()).toEqual(FIRST)
    await book(given.app, observing, 2 * LIMIT)
    expect(await given.ask()).toEqual(THIRD)
  })

  test('is answered by its first model again after a grant, until the grant expires', async () => {
    const given = await startDegrading()
    const { app, clock, ask } = given
    const budget = await createBudget(given, { period: 'total' })
    await book(app, budget, 90_000)
    expect(await ask()).toEqual(THIRD)
    const grant = { amount: LIMIT, reason: 'launch', expires_at: Math.floor(clock.now() / 1000) + 3_600 }
    const granted = await app.call('POST', `/v1/budgets/${budget}/grants`, { body: grant })
    expect(granted.status).toBe(201)
    expect(await ask()).toEqual(FIRST)
    clock.advance(3_600)
    expect(await ask()).toEqual(THIRD)
  })

  test('is answered by the cheaper model also if the request names another model', async () => {
    const given = await startDegrading({ degrade: [{ at: 80, to: small }], allowed_models: [large, small] })
    const budget = await createBudget(given)
    await book(given.app, budget, 80_000)
    expect(await given.ask({ model: 'metered' })).toEqual(THIRD)
    expect((await given.ask({ model: 'spare' })).status).toBe(403)
    const { headers } = await sendChat(given.app, 'hello', { model: `agent/${given.id}` })
    expect(headers.get('x-parley-degraded')).toBe('budget')
  })

  test('counts what running calls have reserved', async () => {
    const answer = Promise.withResolvers<Plan>()
    const begun = Promise.withResolvers<void>()
    const given = await startDegrading(undefined, {
      plan: ({ max_tokens }) => {
        if (max_tokens !== 85_000) return {}
        begun.resolve()
        return answer.promise
      },
    })
    await createBudget(given)
    const running = given.ask({ max_tokens: 85_000 })
    await begun.promise
    expect(await given.ask({ max_tokens: 300 })).toEqual(THIRD)
    answer.resolve({})
    expect(await running).toMatchObject({ status: 200, degraded: null })
    expect(await given.ask()).toEqual(FIRST)
  })

  test('keeps its model for the later rounds of a turn', async () => {
    const booking: { run?: () => Promise<void> } = {}
    const given = await startDegrading(undefined, {
      yaml: agentWith(['lookup']),
      plan: async ({ messages }) => {
        if (messages.at(-1)?.role === 'tool') return {}
        await booking.run?.()
        return { tool: 'lookup' }
      },
    })
    const budget = await createBudget(given)
    booking.run = () => book(given.app, budget, 80_000)
    expect(await given.ask()).toEqual(FIRST)
    expect(given.provider.requests.map(({ model }) => model)).toEqual(['metered', 'metered'])
  })

  test('is answered by a free model when a budget in US dollars is used up', async () => {
    const config = 'prices:\n  gateway/metered:\n    - per_million: { input: 1, output: 1 }\n'
    const given = await startDegrading({ degrade: [{ at: 80, to: free }] }, { config })
    const budget = await createBudget(given, { unit: 'usd', limit: '1' })
    expect(await given.ask()).toEqual(FIRST)
    for (const booked of [1, 1.5]) {
      await book(given.app, budget, booked)
      const { status, headers } = await sendChat(given.app, 'hello', { model: undefined }, given.key)
      expect([status, headers.get('x-parley-provider'), headers.get('x-parley-degraded')]).toEqual([
        ...[200, 'play', 'budget'],
      ])
    }
    await given.app.call('PATCH', `/v1/budgets/${budget}`, { body: { limit: '0' } })
    expect((await given.ask()).status).toBe(200)
    expect(given.provider.requests).toHaveLength(1)
  })

  test('uses the fallbacks of the policy if the cheaper model fails', async () => {
    const given = await startDegrading(
      { degrade: [{ at: 80, to: small }], fallback_models: [small, medium] },
      { plan: ({ model }) => (model === 'thrifty' ? { status: 500 } : {}) },
    )
    const budget = await createBudget(given)
    await book(given.app, budget, 80_000)
    expect(await given.ask()).toEqual(SECOND)
  })

  test('reveals no amount and no budget to its visitors', async () => {
    const given = await startDegrading()
    const budget = await createBudget(given, { limit: 123_456 })
    await book(given.app, budget, 111_111)
    const { headers, text } = await sendChat(given.app, 'hello', { model: undefined }, given.key)
    expect(headers.get('x-parley-degraded')).toBe('budget')
    const all = JSON.stringify([...headers]) + text
    for (const secret of [budget, '123456', '111111']) expect(all).not.toContain(secret)
  })

  test('is answered by its first model in observe mode if the counters cannot be read, else rejected', async () => {
    const given = await startDegrading()
    const budget = await createBudget(given, { mode: 'observe' })
    await book(given.app, budget, 90_000)
    expect(await given.ask()).toEqual(THIRD)
    const { db } = given.app.service.deps
    const rename = (from: string, to: string) => sql.raw(`alter table ${from} rename to ${to}`).execute(db)
    await rename('budget_counters', 'away')
    expect(await given.ask()).toEqual(FIRST)
    await rename('away', 'budget_counters')
    await given.app.call('PATCH', `/v1/budgets/${budget}`, { body: { mode: 'enforce' } })
    expect(await given.ask()).toEqual(THIRD)
    await rename('budget_counters', 'away')
    expect((await given.ask()).status).toBe(503)
    await rename('away', 'budget_counters')
  })
})

describe('stored turns of an agent with `degrade`', () => {
  const stored = { yaml: storingAgent() }

  test('explain in their diagnostics that a budget has determined the model', async () => {
    const given = await startDegrading(undefined, stored)
    const budget = await createBudget(given)
    await book(given.app, budget, 80_000)
    const { headers, status } = await sendChat(given.app, 'hello', { model: `agent/${given.id}` })
    expect([status, headers.get('x-parley-degraded')]).toEqual([200, 'budget'])
    const { body } = await given.app.call('GET', `/v1/turns/${headers.get('x-parley-turn')}`)
    expect(body.diagnostics.route).toEqual({
      requested: null,
      chosen: small,
      source: 'budget',
      skipped: [{ ...large, why: 'budget' }],
    })
  })

  test('count the budget of the conversation that a response continues', async () => {
    const given = await startDegrading(undefined, stored)
    const { app, id, provider } = given
    const budget = await createBudget(given, { scope: { type: 'conversation', id }, period: 'total' })
    const first = await respond(app, { model: `agent/${id}`, input: 'hello' })
    const { body: list } = await app.call('GET', `/v1/budgets/${budget}/subjects`)
    await book(app, budget, 80_000, list.data[0].subject)
    const next = { model: `agent/${id}`, input: 'more', previous_response_id: first.body.id }
    const answers = [first, await respond(app, next), await respond(app, { ...next, stream: true })]
    expect(answers.map(({ headers }) => headers.get('x-parley-degraded'))).toEqual([null, 'budget', 'budget'])
    expect((await respond(app, { model: `agent/${id}`, input: 'new' })).body.model).toBe('metered')
    expect(provider.requests.map(({ model }) => model)).toEqual([
      ...['metered', 'thrifty', 'thrifty', 'metered'],
    ])
  })

  test('of visitors count the budget of each visitor', async () => {
    const given = await startDegrading(undefined, stored)
    const { app, id, key, provider } = given
    const budget = await createBudget(given, { scope: { type: 'visitor', id }, period: 'total' })
    const visitor = await beginSession(app, key)
    await sayAndWait(visitor, 'hello')
    const { body: list } = await app.call('GET', `/v1/budgets/${budget}/subjects`)
    await book(app, budget, 80_000, list.data[0].subject)
    await sayAndWait(visitor, 'again')
    const more = { model: `agent/${id}`, safety_identifier: 'ada' }
    expect((await sendChat(app, 'hello', more)).headers.get('x-parley-degraded')).toBeNull()
    expect(provider.requests.map(({ model }) => model)).toEqual(['metered', 'thrifty', 'metered'])
  })
})

test("the playground's trace shows that a budget has determined the models", async () => {
  const given = await startDegrading()
  const budget = await createBudget(given)
  const readRoute = async () => {
    const chunks = await createTypedClient(given.app).chat.stream.mutate({
      ...{ model: `agent/${given.id}`, messages: [{ role: 'user', content: 'hi' }] },
      trial: { is_traced: true, model: 'metered' },
    })
    const all = []
    for await (const run of chunks) all.push(...run)
    return all.flatMap(({ step }) => step ?? [])[0]
  }
  expect(await readRoute()).toMatchObject({ models: [large], is_degraded: false })
  await book(given.app, budget, 80_000)
  expect(await readRoute()).toMatchObject({ models: [small], is_degraded: true })
})

test('a step whose model does not accept a new attachment is skipped, and earlier attachments are omitted', async () => {
  const models = [
    { id: 'up-chat', architecture: { input_modalities: ['text', 'image'] } },
    { id: 'up-small', architecture: { input_modalities: ['text'] } },
  ]
  await harness.upstream.script('/v1/models', `{{up:body ${JSON.stringify({ data: models })}}}`)
  const app = await harness.start()
  const attachments = { types: ['image'], maxCount: 2, maxBytes: 2048 }
  const yaml = JSON.stringify({ ...JSON.parse(storingAgent()), attachments })
  const { agent_id: id } = await app.createAgent(yaml)
  const [chat, cheap] = ['up-chat', 'up-small'].map((model) => ({ provider: 'gateway', model }))
  const policy = { default_model: chat, degrade: [{ at: 1, to: cheap }] }
  expect((await app.call('PUT', pathOf(id), { body: policy })).status).toBe(200)
  const budget = { scope: { type: 'agent', id }, period: 'day', limit: LIMIT, mode: 'observe' }
  const { body: created } = await app.call('POST', '/v1/budgets', { body: budget })
  await book(app, created.id, LIMIT)
  const png = Buffer.from('89504e470d0a1a0a0000000d4948445207070707', 'hex').toString('base64')
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }
  const question = { role: 'user', content: [image] }
  const ask = (messages: object[]) => sendChat(app, '', { model: `agent/${id}`, messages })
  const { headers, status, text } = await ask([question])
  expect([status, headers.get('x-parley-degraded'), text]).toEqual([200, null, text])
  const { body: turn } = await app.call('GET', `/v1/turns/${headers.get('x-parley-turn')}`)
  expect(turn.diagnostics.route).toMatchObject({
    ...{ chosen: chat, source: 'policy', skipped: [{ ...cheap, why: 'attachment_not_supported' }] },
  })
  const next = await ask([
    question,
    { role: 'assistant', content: 'Nice.' },
    { role: 'user', content: 'And?' },
  ])
  expect(next.headers.get('x-parley-degraded')).toBe('budget')
  const { body } = (await harness.listChats()).at(-1) ?? {}
  expect(body).toMatchObject({ model: 'up-small' })
  expect(JSON.stringify(body)).toContain('cannot be shown')
})

describe('`degrade` in a model policy', () => {
  test('is stored, returned, audited, and empty by default', async () => {
    const { app, id } = await startDegrading({})
    expect((await app.call('GET', pathOf(id))).body.degrade).toEqual([])
    const degrade = [
      { at: 50, to: medium },
      { at: 100, to: small },
    ]
    const put = await app.call('PUT', pathOf(id), { body: { degrade } })
    expect([put.status, put.body.degrade]).toEqual([200, degrade])
    const { body } = await app.call('PUT', pathOf(id), { body: put.body })
    expect(body.degrade).toEqual(degrade)
    const audit = await app.service.deps.db.selectFrom('audit_events').selectAll().execute()
    expect(audit.filter(({ details }) => details?.includes('"degrade":[{"at":50'))).toHaveLength(2)
    const written = await createTypedClient(app).agents.replaceModelPolicy.mutate({ agent_id: id })
    expect(written.degrade).toEqual([])
  })

  test('is empty in a policy that an earlier version has stored', async () => {
    const { app, id, ask } = await startDegrading()
    const { db, agents } = app.service.deps
    const earlier = { default_model: large, allowed_models: [], fallback_models: [], max_output_tokens: null }
    await db
      .updateTable('agents')
      .set({ model_policy: JSON.stringify(earlier) })
      .where('id', '=', id)
      .execute()
    agents.invalidate()
    expect((await app.call('GET', pathOf(id))).body.degrade).toEqual([])
    expect(await ask()).toEqual(FIRST)
  })

  test.each<[string, object[], string]>([
    ['a percentage of 0', [{ at: 0, to: small }], 'degrade[0].at'],
    ['a percentage above 100', [{ at: 101, to: small }], 'degrade[0].at'],
    ['a fraction', [{ at: 79.5, to: small }], 'degrade[0].at'],
    ['more than 3 steps', [10, 20, 30, 40].map((at) => ({ at, to: small })), 'degrade'],
    ['descending steps', [80, 50].map((at) => ({ at, to: small })), 'degrade[1].at'],
    ['equal steps', [80, 80].map((at) => ({ at, to: small })), 'degrade[1].at'],
    ['a model that is not allowed', [{ at: 80, to: medium }], 'degrade[0].to'],
    ['an unknown model', [{ at: 80, to: { ...small, model: 'gone' } }], 'degrade[0].to.model'],
    ['an unknown provider', [{ at: 80, to: { ...small, provider: 'gone' } }], 'degrade[0].to.provider'],
    ['no model', [{ at: 80 }], 'degrade[0].to'],
  ])('is rejected with %s', async (_what, degrade, param) => {
    const { app, id } = await startDegrading({})
    const body = { default_model: large, allowed_models: [large, small], degrade }
    const answer = await app.call('PUT', pathOf(id), { body })
    expect(answer.status).toBe(400)
    expect(answer.body.error).toContain(`${param}: `)
  })
})
