/** Tests how long conversations are stored. */
import { describe, expect, test } from 'vitest'
import { deleteAgent } from '../../../src/agents/agents.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { publicIdOf } from '../../support/audit.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { behindProxy, claimKey, revealKey } from '../../support/console.ts'
import { maintain, STORING, storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const harness = await startChatHarness()
const DAY = 86_400
const CANARY = 'quokka-7731'

describe('maintenance', () => {
  test('deletes expired conversations in several batches', async () => {
    const clock = createFakeClock()
    const app = await harness.start({}, { clock })
    await app.call('POST', '/v1/conversations', { body: {} })
    const { write } = await app.service.deps.conversations.storage.open()
    const row = await write.selectFrom('conversations').selectAll().executeTakeFirstOrThrow()
    const copies = Array.from({ length: 202 }, (_, count) => ({ ...row, id: `conv_${count}` }))
    await write.insertInto('conversations').values(copies).execute()
    clock.advance(20 * DAY)
    const { agent_id: id } = await app.createAgent(STORING)
    const recent = await storeChat(app, id, 'Hello')
    clock.advance(10 * DAY)
    expect(await maintain(app)).toMatchObject({ conversations: 203 })
    const { body } = await app.call('GET', '/v1/conversations')
    expect(body.data.map((one: { id: string }) => one.id)).toEqual([recent])
  })

  test('applies a changed retention time to stored conversations', async () => {
    const clock = createFakeClock()
    const app = await harness.start({ PARLEY_CONVERSATIONS_MAX_DAYS: '50' }, { clock })
    const { agent_id: id } = await app.createAgent(STORING)
    const conversation = await storeChat(app, id, 'Hello')
    const readExpiry = async () =>
      (await app.call('GET', `/v1/conversations/${conversation}`)).body.parley.expires_at
    const keep = (days: number) =>
      app.call('PUT', `/v1/agents/${id}`, { body: { yaml: STORING.replace('30d', `${days}d`) } })
    const start = Math.floor(clock.now() / 1000)
    await keep(60)
    await maintain(app)
    expect(await readExpiry()).toBe(start + 50 * DAY)
    await keep(2)
    await maintain(app)
    expect(await readExpiry()).toBe(start + 2 * DAY)
    clock.advance(2 * DAY)
    expect(await maintain(app)).toMatchObject({ conversations: 1 })
  })

  test('deletes expired conversations even if their agent no longer stores conversations', async () => {
    const clock = createFakeClock()
    const app = await harness.start({}, { clock })
    const { agent_id: id } = await app.createAgent(STORING)
    const conversation = await storeChat(app, id, 'Hello')
    await app.call('PUT', `/v1/agents/${id}`, { body: { yaml: 'name: A\ninstructions: B.\n' } })
    expect(await maintain(app)).toMatchObject({ conversations: 0 })
    expect((await app.call('GET', `/v1/conversations/${conversation}`)).status).toBe(200)
    clock.advance(30 * DAY)
    expect(await maintain(app)).toMatchObject({ conversations: 1 })
  })

  test('deletes the events of old turns but not their responses', async () => {
    const clock = createFakeClock()
    const app = await harness.start({ PARLEY_REPLAY_HOURS: '1' }, { clock })
    const { agent_id: id } = await app.createAgent(STORING)
    const { body: before } = await app.call('POST', '/v1/responses', {
      body: { model: `agent/${id}`, input: 'Hello there' },
    })
    clock.advance(3601)
    expect(await maintain(app)).toMatchObject({ eventLogs: 1 })
    const { body: after } = await app.call('GET', `/v1/responses/${before.id}`)
    expect(after).toEqual(before)
    expect(await maintain(app)).toMatchObject({ eventLogs: 0 })
  })

  test("deletes an idempotency key after a day, and keeps its turn's events until then", async () => {
    const clock = createFakeClock()
    const app = await harness.start({ PARLEY_REPLAY_HOURS: '1' }, { clock })
    const { agent_id: id } = await app.createAgent(STORING)
    const send = () =>
      app.call('POST', '/v1/chat/completions', {
        body: chatRequest('Hello', { model: `agent/${id}` }),
        headers: { 'Idempotency-Key': 'one' },
      })
    const first = await send()
    clock.advance(7200)
    expect(await maintain(app)).toMatchObject({ eventLogs: 0, idempotencyKeys: 0 })
    expect((await send()).text).toBe(first.text)
    clock.advance(DAY)
    expect(await maintain(app)).toMatchObject({ eventLogs: 1, idempotencyKeys: 1 })
  })

  test('keeps an expired conversation until its running turn ends', async () => {
    const clock = createFakeClock()
    const app = await harness.start({}, { clock })
    const { agent_id: id } = await app.createAgent(STORING)
    const { body } = await app.call('POST', '/v1/responses', {
      body: { model: `agent/${id}`, input: '{{up:hang}}', background: true },
    })
    expect(await maintain(app, Math.floor(clock.now() / 1000) + 31 * DAY)).toMatchObject({ conversations: 0 })
    expect((await app.call('POST', `/v1/responses/${body.id}/cancel`)).status).toBe(200)
    expect(await maintain(app, Math.floor(clock.now() / 1000) + 31 * DAY)).toMatchObject({ conversations: 1 })
  })
})

describe("an agent's conversations", () => {
  test('are deleted with the agent, without affecting other conversations', async () => {
    const app = await harness.start()
    const [one, two] = [await app.createAgent(STORING), await app.createAgent(STORING)]
    await storeChat(app, one.agent_id, 'Hello')
    const other = await storeChat(app, two.agent_id, 'Hello')
    await app.call('DELETE', `/v1/agents/${one.agent_id}`)
    const { body } = await app.call('GET', '/v1/conversations')
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([other])
  })

  test('are deleted by maintenance if the server stopped just after it deleted the agent', async () => {
    const app = await harness.start()
    const { agent_id: id } = await app.createAgent(STORING)
    await storeChat(app, id, 'Hello')
    // The main database is changed first, so a server that stops then has deleted only the agent.
    const { deps } = app.service
    await deleteAgent({ ...deps, onAgentDeleted: async () => {} }, serviceActor, publicIdOf(app.key), id)
    expect(await maintain(app)).toMatchObject({ conversations: 1 })
  })

  test('are not deleted by maintenance if the agent is missing from the database but was never deleted', async () => {
    const app = await harness.start()
    const { agent_id: id } = await app.createAgent(STORING)
    await storeChat(app, id, 'Hello')
    await app.service.deps.db.deleteFrom('agents').where('id', '=', id).execute()
    expect(await maintain(app)).toMatchObject({ conversations: 0 })
    expect((await app.call('GET', '/v1/conversations')).body.data).toHaveLength(1)
  })
})

test("claiming a key moves the automatic key's conversations to the claimed key", async () => {
  const app = await harness.start({ ...behindProxy, PARLEY_STORE_WITHOUT_AGENT: 'on_request' })
  const key = await revealKey(app, 'ada@example.org')
  const { agent_id: id } = await app.createAgent(STORING, key)
  for (const model of [`agent/${id}`, 'up-chat'])
    await app.call('POST', '/v1/responses', { key, body: { model, input: 'Hello', store: true } })
  expect((await claimKey(app, 'ada@example.org', app.key)).status).toBe(200)
  const { body } = await app.call('GET', '/v1/conversations')
  expect(body.data).toHaveLength(2)
})

test("maintenance moves an agent's conversations to the agent's current tenant", async () => {
  const app = await harness.start()
  const { agent_id: id } = await app.createAgent(STORING)
  await storeChat(app, id, 'Hello')
  const { write } = await app.service.deps.conversations.storage.open()
  await write.updateTable('conversations').set({ tenant: 'formerTenant' }).execute()
  expect((await app.call('GET', '/v1/conversations')).body.data).toEqual([])
  await maintain(app)
  expect((await app.call('GET', '/v1/conversations')).body.data).toHaveLength(1)
})

test('stored conversations count toward PARLEY_CONVERSATIONS_MAX_BYTES until they are deleted', async () => {
  const app = await harness.start({ PARLEY_CONVERSATIONS_MAX_BYTES: '1000' })
  const { agent_id: id } = await app.createAgent(STORING)
  const conversation = await storeChat(app, id, 'x'.repeat(2000))
  const clock = app.service.deps.clock as ReturnType<typeof createFakeClock>
  clock.advance(60)
  const send = () =>
    app.call('POST', '/v1/chat/completions', { body: chatRequest('Hello', { model: `agent/${id}` }) })
  expect((await send()).headers.get('x-parley-stored')).toBe('false')
  await app.call('DELETE', `/v1/conversations/${conversation}`)
  expect((await send()).headers.get('x-parley-stored')).toBe('true')
})

test('the audit log records that an owner deleted a conversation but does not contain its text', async () => {
  const app = await harness.start()
  const { agent_id: id } = await app.createAgent(STORING)
  const conversation = await storeChat(app, id, CANARY)
  await app.call('DELETE', `/v1/conversations/${conversation}`)
  const rows = await app.service.deps.db.selectFrom('audit_events').selectAll().execute()
  expect(rows.at(-1)).toMatchObject({ action: 'conversation.delete', target_id: conversation })
  expect(JSON.stringify(rows)).not.toContain(CANARY)
})
