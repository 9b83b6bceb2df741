/** Tests how owners list, export and erase visitors. */
import { hash } from 'node:crypto'
import { sql } from 'kysely'
import { describe, expect, inject, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp, startAppOnDisk, type TestApp } from '../../support/app.ts'
import { listAuditRows } from '../../support/audit.ts'
import { asUser, behindProxy, claimKey } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { eventually } from '../../support/process.ts'
import { findText, openConversations, storingAgent } from '../../support/stored-chats.ts'
import { asVisitor, beginSession, followUntil, say, type TestVisitor } from '../../support/visitors.ts'
import { allowLoopback, createWebhook, deliverDue, startReceiver } from '../../support/webhook-receiver.ts'

const unlimited = { PARLEY_RATE_LIMIT_AGENT: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0' }

async function startVisit(env: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock()
  const app = await startApp(env, { clock })
  const { agent_key: key, agent_id: agentId } = await app.createAgent(storingAgent())
  return { app, clock, key, agentId, one: await beginSession(app, key) }
}

/**
 * Sends a message and polls until its turn has ended, because the feed would poll every millisecond with the
 * fake clock.
 */
async function talk(one: TestVisitor, text: string, more: Parameters<typeof say>[2] = {}) {
  const sent = await say(one, text, more)
  const { id: conversation } = sent.conversation
  const readStatus = async () => (await one.visitor.open.query({ conversation })).turn?.status
  await eventually(readStatus, 'completed')
  return { sent }
}

const readReceipt = async (app: TestApp, id: string) => (await app.call('GET', `/v1/erasures/${id}`)).body

/** Erases a visitor and returns the receipt once the erasure has ended. */
async function erase(app: TestApp, visitorId: string) {
  const { status, body } = await app.call('DELETE', `/v1/visitors/${visitorId}`)
  expect([status, body.object, body.visitor_id]).toEqual([202, 'erasure', visitorId])
  await eventually(async () => (await readReceipt(app, body.id)).status, 'done')
  return readReceipt(app, body.id)
}

describe('the owner of an agent', () => {
  test('lists and finds visitors who have sent a message, most recently seen first', async () => {
    const { app, clock, key, agentId, one } = await startVisit()
    await talk(one, 'Hello.')
    clock.advance(10)
    const two = await beginSession(app, key)
    await talk(two, 'Hello.')
    await beginSession(app, key)
    const { body } = await app.call('GET', '/v1/visitors')
    expect(body).toMatchObject({ object: 'list', has_more: false, data: [{ id: two.id }, { id: one.id }] })
    expect(body.data[1]).toEqual({
      ...{ id: one.id, object: 'visitor', kind: 'anonymous', issuer: agentId, subject: one.id },
      ...{ email: null, name: null, claims: {}, conversations: 1, created_at: 1_800_000_000 },
      seen_at: 1_800_000_000,
    })
    const idsOf = async (query: string) =>
      (await app.call('GET', `/v1/visitors?${query}`)).body.data.map(({ id }: { id: string }) => id)
    expect(await idsOf(`q=${one.id.slice(6, 20)}`)).toEqual([one.id])
    expect(await idsOf(`subject=${two.id}`)).toEqual([two.id])
    expect(await idsOf('email=ada@example.org')).toEqual([])
    expect(await idsOf(`limit=1&after=${two.id}`)).toEqual([one.id])
    expect((await app.call('GET', `/v1/visitors/${one.id}`)).body).toEqual(body.data[1])
  })

  test('lists the visitors of one agent, and receives 400 for an unknown visitor in `after`', async () => {
    const { app, agentId, one } = await startVisit()
    await talk(one, 'Hello.')
    const other = await app.createAgent(storingAgent())
    const two = await beginSession(app, other.agent_key)
    await talk(two, 'Hello.')
    const idsOf = async (agent: string) =>
      (await app.call('GET', `/v1/visitors?agent=${agent}`)).body.data.map(({ id }: { id: string }) => id)
    expect(await idsOf(agentId)).toEqual([one.id])
    expect(await idsOf(other.agent_id)).toEqual([two.id])
    expect(await idsOf('agent-unknown')).toEqual([])
    const { status, body } = await app.call('GET', '/v1/visitors?after=vis_unknown')
    expect([status, body.error.param]).toEqual([400, 'after'])
  })

  test('lists a verified visitor only under an agent that this visitor has used', async () => {
    const { app, agentId, one } = await startVisit()
    const other = await app.createAgent(storingAgent())
    await talk(one, 'Hello.')
    const db = await openConversations(app)
    const verified = { kind: 'verified', issuer: 'https://shop.example.org', subject: 'customer-7' } as const
    await db.updateTable('visitors').set(verified).execute()
    const subjectsOf = async (agent: string) =>
      (await app.call('GET', `/v1/visitors?agent=${agent}`)).body.data.map(
        ({ subject }: { subject: string }) => subject,
      )
    expect(await subjectsOf(agentId)).toEqual(['customer-7'])
    expect(await subjectsOf(other.agent_id)).toEqual([])
  })

  test('can export a visitor in the console, unlike other console users', async () => {
    const app = await startApp(behindProxy)
    await claimKey(app, 'ada@example.org', app.key)
    const { agent_key: key } = await app.createAgent(storingAgent())
    const one = await beginSession(app, key)
    await talk(one, 'Hello.')
    const path = `/v1/manager/visitors/${one.id}/export`
    const { status, headers, text } = await app.call('GET', path, asUser('ada@example.org'))
    expect(status).toBe(200)
    expect(headers.get('content-disposition')).toBe(`attachment; filename=${one.id}.jsonl`)
    expect(text).toContain('"object":"export.end"')
    expect((await app.call('GET', path, asUser('bob@example.org'))).status).toBe(404)
    expect((await app.call('GET', path, { key: null })).status).toBe(401)
  })

  test('exports the turns of one visitor only', async () => {
    const { app, key, one } = await startVisit()
    await talk(one, 'The first canary.')
    await talk(await beginSession(app, key), 'The second canary.')
    const response = await app.fetch(`${app.url}/v1/visitors/${one.id}/export`, {
      headers: { Authorization: `Bearer ${app.key}` },
    })
    const text = await response.text()
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ object }) => object)).toEqual(['visitor', 'turn', 'export.end'])
    expect(text).toContain('The first canary.')
    expect(text).not.toContain('The second canary.')
    expect(response.headers.get('content-type')).toContain('application/jsonl')
    expect((await listAuditRows(app)).at(-1)).toMatchObject({
      action: 'conversation.export',
      target_id: one.id,
    })
  })

  test("does not find another parent key's visitors and erasures", async () => {
    const { app, one } = await startVisit()
    await talk(one, 'Hello.')
    const key = await createTenant(app)
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/export'],
      ['DELETE', ''],
    ] as const)
      expect((await app.call(method, `/v1/visitors/${one.id}${path}`, { key })).status).toBe(404)
    expect((await app.call('GET', '/v1/visitors', { key })).body.data).toEqual([])
    const { id } = await erase(app, one.id)
    expect((await app.call('GET', `/v1/erasures/${id}`, { key })).status).toBe(404)
  })
})

describe('an erasure', () => {
  test('deletes all data of one visitor, and its receipt states how much it deleted', async () => {
    const { app, key, one } = await startVisit(allowLoopback)
    const receiver = await startReceiver()
    const events = ['conversation.created', 'conversation.deleted', 'visitor.erased']
    await createWebhook(app, { url: receiver.url, events, include_text: true })
    const two = await beginSession(app, key)
    const { sent } = await talk(one, 'Hello.')
    await talk(one, 'Again.', { conversation: sent.conversation.id })
    const second = await talk(one, 'Another conversation.')
    const other = await talk(two, 'I stay.')
    for (const [visitor, { turn, conversation }] of [
      [one, sent],
      [one, second.sent],
      [two, other.sent],
    ] as const) {
      await visitor.visitor.rate.mutate({ turn: turn.id, value: 'up' })
      const note = { body: { text: 'A note.' } }
      expect((await app.call('POST', `/v1/conversations/${conversation.id}/notes`, note)).status).toBe(200)
    }
    expect(
      (await app.call('PUT', `/v1/turns/${sent.turn.id}/rating`, { body: { value: 'down' } })).status,
    ).toBe(200)
    const db = await openConversations(app)
    const own = [sent.conversation.id, second.sent.conversation.id]
    const { n: events_ } = await db
      .selectFrom('turn_events')
      .innerJoin('turns', 'turns.id', 'turn_events.turn_id')
      .where('turns.visitor_id', '=', one.id)
      .select(({ fn }) => fn.countAll<number>().as('n'))
      .executeTakeFirstOrThrow()
    await deliverDue(app)
    const receipt = await erase(app, one.id)
    expect(receipt).toMatchObject({
      object: 'erasure',
      counts: {
        ...{ conversations: 2, turns: 3, items: 6, events: Number(events_), search: 6 },
        ...{ blobs: 0, ratings: 3, notes: 2, deliveries: 2 },
      },
      digest: hash('sha256', own.toSorted().join('\n')),
      remains: expect.arrayContaining([
        'audit and usage rows without text',
        'backups made before 2027-01-15T08:00:00Z',
      ]),
    })
    const rows = await db.selectFrom('conversations').select('id').execute()
    expect(rows).toEqual([{ id: other.sent.conversation.id }])
    for (const [table, left] of [
      ['ratings', 1],
      ['conversation_notes', 1],
      ['item_texts', 2],
    ] as const)
      expect(await db.selectFrom(table).selectAll().execute(), table).toHaveLength(left)
    expect((await app.call('GET', `/v1/visitors/${one.id}`)).status).toBe(404)
    await deliverDue(app)
    const erased = receiver.received.find(({ body }) => body.type === 'visitor.erased')
    expect(erased?.body.data).toMatchObject({ visitor_id: one.id, erasure_id: receipt.id })
    const deleted = receiver.received.filter(({ body }) => body.type === 'conversation.deleted')
    expect(deleted.map(({ body }) => [body.data.conversation_id, body.data.reason]).sort()).toEqual(
      own.map((id) => [id, 'visitor_erased']).sort(),
    )
    expect((await listAuditRows(app)).at(-1)).toMatchObject({ action: 'visitor.erase', target_id: one.id })
    const repeated = await app.call('DELETE', `/v1/visitors/${one.id}`)
    expect([repeated.status, repeated.body.id]).toEqual([202, receipt.id])
  })

  test('cancels the running turn, ends the feed, and makes the tokens invalid', async () => {
    const app = await startApp()
    const { agent_key: key } = await app.createAgent(storingAgent())
    const one = await beginSession(app, key)
    const { conversation, cursor } = await say(one, '[[tokens:5000]] [[delay:20]]')
    const feed = followUntil(one, { conversation: conversation.id, cursor }, () => false).catch(() => 'ended')
    await erase(app, one.id)
    await feed
    const denied = { data: { httpStatus: 403, code: 'visitor_required' } }
    await expect(one.visitor.conversations.query({})).rejects.toMatchObject(denied)
    await expect(say(one, 'Hello?')).rejects.toMatchObject(denied)
    const rest = await app.call('GET', '/v1/conversations', {
      key,
      headers: { 'X-Parley-Visitor': one.token },
    })
    expect([rest.status, rest.body.error.code]).toEqual([403, 'visitor_required'])
    const renewed = await asVisitor(app, key, one.token).session.mutate({})
    expect(renewed.visitor.id).not.toBe(one.id)
    const db = await openConversations(app)
    expect(await db.selectFrom('turns').select('id').execute()).toEqual([])
  })

  test('resumes after the process that started it is killed', async () => {
    const { app, clock, one } = await startVisit()
    await talk(one, 'Hello.')
    const { id } = await erase(app, one.id)
    const db = await openConversations(app)
    // Restores the state after a crash between two batches.
    await sql`update erasures set status = 'running', digest = null, finished_at = null,
      lease_until = ${Math.floor(clock.now() / 1000) + 60}`.execute(db)
    await app.service.deps.erasures.resume()
    expect((await readReceipt(app, id)).status).toBe('running')
    clock.advance(61)
    await app.service.deps.erasures.resume()
    expect(await readReceipt(app, id)).toMatchObject({ status: 'done', counts: { conversations: 1 } })
  })

  test.runIf(inject('database') === 'sqlite')(
    'leaves no byte of the text in the data directory',
    async () => {
      const app = await startAppOnDisk(unlimited, { clock: createFakeClock() })
      const dataDir = app.service.deps.config.dataDir
      const { agent_key: key } = await app.createAgent(storingAgent())
      const one = await beginSession(app, key)
      const canary = 'Xylophonquartz'
      for (let at = 0; at < 30; at++) await talk(one, `${canary} ${at} ${'word '.repeat(at * 20)}`)
      expect(await findText(app, dataDir, canary)).not.toEqual([])
      const receipt = await erase(app, one.id)
      expect(receipt.counts.turns).toBe(30)
      expect(await findText(app, dataDir, canary)).toEqual([])
      // The search index contains the words in lower case.
      expect(await findText(app, dataDir, canary.toLowerCase())).toEqual([])
    },
  )
})
