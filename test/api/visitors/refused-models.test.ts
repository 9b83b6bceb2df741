/** Tests that the owner sees a visitor's message that no model may answer. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import { beginSession, followUntil, say } from '../../support/visitors.ts'

const harness = await startChatHarness()

async function start() {
  const app = await harness.start()
  const { agent_id: id, agent_key: key } = await app.createAgent(storingAgent({}))
  const readFailed = async () => {
    const { body } = await app.call('GET', '/v1/conversations?status=failed')
    return body.data.map((one: { id: string }) => one.id)
  }
  const readTurns = async (conversation: string) => {
    const { body } = await app.call('GET', `/v1/conversations/${conversation}/turns?order=asc`)
    const details = body.data.map(
      async (turn: { id: string }) => (await app.call('GET', `/v1/turns/${turn.id}`)).body,
    )
    return Promise.all(details)
  }
  const setPolicy = async (body: object) =>
    expect((await app.call('PUT', `/v1/agents/${id}/model-policy`, { body })).status).toBe(200)
  /** Allows only a model that the provider has removed since. */
  const removeModel = async () => {
    const { db, agents } = app.service.deps
    await setPolicy({ allowed_models: [{ provider: 'gateway', model: 'up-chat' }] })
    const { model_policy: policy } = await db
      .selectFrom('agents')
      .select('model_policy')
      .executeTakeFirstOrThrow()
    await db
      .updateTable('agents')
      .set({ model_policy: String(policy).replace('up-chat', 'gone') })
      .execute()
    agents.invalidate()
  }
  return { app, id, key, one: await beginSession(app, key), readFailed, readTurns, setPolicy, removeModel }
}

test('a question that no model may answer is stored as a failed turn with diagnostics', async () => {
  const { id, one, readFailed, readTurns, setPolicy, removeModel } = await start()
  await removeModel()
  const clientId = randomUUID()
  const { conversation, turn, cursor } = await say(one, 'Are you open today?', { client_id: clientId })
  const events = await followUntil(
    one,
    { conversation: conversation.id, cursor: cursor as string },
    ({ event }) => event === 'conversation.turn.ended',
  )
  expect(events.at(-1)?.data).toMatchObject({ turn: { status: 'failed', error_code: 'service_unavailable' } })
  expect(await readFailed()).toEqual([conversation.id])
  const [stored] = await readTurns(conversation.id)
  expect(stored).toMatchObject({
    id: turn.id,
    status: 'failed',
    error_code: 'service_unavailable',
    model: null,
  })
  expect(stored.diagnostics).toMatchObject({
    agent: { id, version: 1 },
    route: { requested: null, chosen: null, source: 'default' },
    policy: [{ kind: 'model_refused', name: 'default' }],
    ...{ attempts: [], tools: [], fallback: false, budget: null, history: { sent: 0, left_out: 0 } },
  })
  const opened = await one.visitor.open.query({ conversation: conversation.id })
  expect(opened.items).toMatchObject([{ author: 'visitor' }])
  // The visitor tries again when a model may answer.
  await setPolicy({ allowed_models: [] })
  const again = await one.visitor.regenerate.mutate({ turn: turn.id, client_id: randomUUID() })
  await followUntil(
    one,
    { conversation: conversation.id, cursor: again.cursor },
    ({ event }) => event === 'conversation.turn.ended',
  )
  expect((await readTurns(conversation.id)).map(({ status }) => status)).toEqual(['failed', 'completed'])
})

test('a question for a model that the agent may not use or that does not exist is stored as a failed turn', async () => {
  const { one, readTurns, setPolicy } = await start()
  await setPolicy({ allowed_models: [{ provider: 'gateway', model: 'up-chat' }] })
  for (const [model, code] of [
    ['up-small', 'model_not_allowed'],
    ['nothing', 'model_not_found'],
  ] as const) {
    const { conversation, cursor } = await say(one, 'Hello?', { model })
    await followUntil(
      one,
      { conversation: conversation.id, cursor: cursor as string },
      ({ event }) => event === 'conversation.turn.ended',
    )
    const [stored] = await readTurns(conversation.id)
    expect(stored).toMatchObject({ status: 'failed', error_code: code })
    expect(stored.diagnostics).toMatchObject({
      route: { requested: model },
      policy: [{ kind: 'model_refused', name: model }],
    })
  }
})

test('a question that no model may answer causes the event turn.failed', async () => {
  const { app, one, removeModel } = await start()
  const created = await app.call('POST', '/v1/webhooks', {
    body: { url: 'https://example.org/hook', events: ['turn.failed'] },
  })
  expect(created.status).toBe(201)
  await removeModel()
  const { conversation } = await say(one, 'Are you open today?')
  const list = async () => (await app.call('GET', `/v1/webhooks/${created.body.id}/deliveries`)).body.data
  await expect.poll(async () => (await list()).length).toBe(1)
  expect(JSON.stringify(await list())).toContain(conversation.id)
})
