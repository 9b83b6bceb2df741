/** Tests `degrade` in stored turns, in the playground and with attachments. */

import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import {
  book,
  createAgentBudget,
  LIMIT,
  large,
  pathOf,
  small,
  startDegrading,
} from '../../support/degrading-agent.ts'
import { respond } from '../../support/responses.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import { sendChat } from '../../support/usage.ts'
import { beginSession, sayAndWait } from '../../support/visitors.ts'

const harness = await startChatHarness()

describe('stored turns of an agent with `degrade`', () => {
  const stored = { yaml: storingAgent() }

  test('explain in their diagnostics that a budget has determined the model', async () => {
    const given = await startDegrading(undefined, stored)
    const budget = await createAgentBudget(given)
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
    const budget = await createAgentBudget(given, { scope: { type: 'conversation', id }, period: 'total' })
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
    const budget = await createAgentBudget(given, { scope: { type: 'visitor', id }, period: 'total' })
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
  const budget = await createAgentBudget(given)
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
