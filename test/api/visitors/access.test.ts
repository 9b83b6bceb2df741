/** Tests which callers can access visitors' conversations, and with which token. */
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createVisitorTokens } from '../../../src/identity/visitor-tokens.ts'
import { withoutKeys } from '../../../src/lib/api-key.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { maintain } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { openConversations, storingAgent } from '../../support/stored-chats.ts'
import { asVisitor, beginSession, say, type TestVisitor } from '../../support/visitors.ts'

const DAY_SECONDS = 86_400
const HOUR_SECONDS = 3600
const unlimited = { PARLEY_RATE_LIMIT_AGENT: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0' }

async function startVisit(conversations: object = {}, env: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock()
  const app = await startApp({ ...unlimited, ...env }, { clock })
  const { agent_key: key, agent_id: agentId } = await app.createAgent(storingAgent(conversations))
  return { app, clock, key, agentId, one: await beginSession(app, key) }
}

const denied = (httpStatus: number, code?: string) => ({ data: { httpStatus, ...(code && { code }) } })

/** Calls every operation on a conversation and its turn. */
function callsOn({ visitor }: TestVisitor, conversation: string, turn: string): Promise<unknown>[] {
  const client_id = crypto.randomUUID()
  return [
    visitor.open.query({ conversation }),
    visitor.follow.query({ conversation }),
    visitor.send.mutate({ conversation, client_id, text: 'Hello.' }),
    visitor.delete.mutate({ conversation }),
    visitor.cancel.mutate({ turn }),
    visitor.continue.mutate({ turn }),
    visitor.toolResults.mutate({ turn, client_id, results: [{ call_id: 'a', output: 'b' }] }),
  ]
}

describe('a visitor token', () => {
  test('identifies the same visitor in a new session', async () => {
    const { app, key, one } = await startVisit()
    expect((await beginSession(app, key, one.token)).id).toBe(one.id)
    expect((await beginSession(app, key)).id).not.toBe(one.id)
  })

  test('expires 30 days after the last session', async () => {
    const { app, clock, key, one } = await startVisit()
    clock.advance(29 * DAY_SECONDS)
    const later = await beginSession(app, key, one.token)
    expect(later.id).toBe(one.id)
    clock.advance(2 * DAY_SECONDS)
    await expect(one.visitor.conversations.query({})).rejects.toMatchObject(denied(403, 'visitor_required'))
    await expect(later.visitor.conversations.query({})).resolves.toMatchObject({ data: [] })
    expect((await beginSession(app, key, one.token)).id).not.toBe(one.id)
  })

  test('is required and is rejected if any character is changed', async () => {
    const { app, key, one } = await startVisit()
    const changed = [...one.token].map((character, at) => {
      const other = character === '0' ? '1' : '0'
      return one.token.slice(0, at) + other + one.token.slice(at + 1)
    })
    for (const token of [undefined, '', 'vst_', `${one.token}A`, ...changed]) {
      const listing = asVisitor(app, key, token).conversations.query({})
      await expect(listing).rejects.toMatchObject(denied(403, 'visitor_required'))
    }
  })

  test('is truncated in the log', async () => {
    const { one } = await startVisit()
    const [id, ...rest] = one.token.split('.')
    expect(rest).toHaveLength(2)
    const shortened = withoutKeys(`it failed with ${one.token}.`)
    for (const part of [id, ...rest]) expect(shortened).not.toContain(part)
  })

  test('is valid only for its agent', async () => {
    const { app, one } = await startVisit()
    const other = await app.createAgent(storingAgent())
    const listing = asVisitor(app, other.agent_key, one.token).conversations.query({})
    await expect(listing).rejects.toMatchObject(denied(403, 'visitor_required'))
  })

  test('remains valid after the server secret changes if the old secret is still configured', () => {
    const clock = createFakeClock()
    const random = (count: number) => new Uint8Array(count).fill(7)
    const secret = (name: string) => Buffer.from(name.padEnd(32))
    const sealer = (newest: string, former: string[]) => ({
      derive: () => secret(newest),
      deriveFormer: () => former.map(secret),
    })
    const before = createVisitorTokens({ sealer: sealer('old', []), clock, random })
    const { token } = before.mint('agent-a', before.newVisitorId())
    const find = (newest: string, former: string[]) =>
      createVisitorTokens({ sealer: sealer(newest, former), clock, random }).find(
        { tenantId: 'tenant-a', agentId: 'agent-a' },
        token,
      )
    expect(find('new', ['old'])).toMatchObject({ kind: 'anonymous' })
    expect(find('new', [])).toBeUndefined()
  })
})

describe("a visitor's conversation", () => {
  test('includes its visitor when the owner reads or lists it', async () => {
    const { app, agentId, one } = await startVisit()
    const { conversation } = await say(one, 'Hello.')
    const visitor = { id: one.id, kind: 'anonymous', subject: one.id, name: null }
    const { body } = await app.call('GET', `/v1/conversations/${conversation.id}`)
    expect(body.parley).toMatchObject({ agent_id: agentId, visitor, channel: 'widget', title: 'Hello.' })
    const listed = await app.call('GET', '/v1/conversations')
    expect(listed.body.data[0].parley.visitor).toEqual(visitor)
  })

  test('is hidden from other visitors, agents and tenants', async () => {
    const { app, key, one } = await startVisit()
    const { conversation, turn } = await say(one, 'Secret.')
    const colleague = await app.createAgent(storingAgent())
    const foreign = await app.createAgent(storingAgent(), await createTenant(app))
    for (const agentKey of [key, colleague.agent_key, foreign.agent_key]) {
      const other = await beginSession(app, agentKey)
      const calls = callsOn(other, conversation.id, turn.id)
      await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject(denied(404))))
      expect((await other.visitor.conversations.query({})).data).toEqual([])
    }
    expect((await one.visitor.conversations.query({})).data).toMatchObject([{ id: conversation.id }])
  })

  test('cannot be read with only the agent key, in any API', async () => {
    const { app, key, one } = await startVisit()
    const { conversation, turn } = await say(one, 'Secret.')
    const path = `/v1/conversations/${conversation.id}`
    for (const [method, place] of [
      ['GET', '/v1/conversations'],
      ['GET', path],
      ['DELETE', path],
      ['GET', `${path}/items`],
      ['GET', `${path}/events`],
      ['GET', `${path}/turns`],
    ] as const) {
      const { status, body } = await app.call(method, place, { key })
      expect([method, place, status, body.error.code]).toEqual([method, place, 403, 'visitor_required'])
    }
    const responding = { key, body: { input: 'Hello.', conversation: conversation.id } }
    expect((await app.call('POST', '/v1/responses', responding)).status).toBe(403)
    expect((await app.call('GET', `/v1/turns/${turn.id}`, { key })).status).toBe(403)
  })

  test("can be read with the agent key and the visitor's token", async () => {
    const { app, key, one } = await startVisit()
    const { conversation, turn } = await say(one, 'Mine.')
    await expect
      .poll(async () => (await one.visitor.open.query({ conversation: conversation.id })).turn?.status)
      .toBe('completed')
    const options = { key, headers: { 'X-Parley-Visitor': one.token } }
    const path = `/v1/conversations/${conversation.id}`
    const listed = await app.call('GET', '/v1/conversations', options)
    expect(listed.body.data).toEqual([
      { id: conversation.id, object: 'conversation', created_at: expect.any(Number), metadata: {} },
    ])
    const { body: items } = await app.call('GET', `${path}/items?order=asc`, options)
    expect(items.data.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant'])
    const item = await app.call('GET', `${path}/items/${items.data[0].id}`, options)
    expect(item.body.content[0].text).toBe('Mine.')
    for (const place of [`${path}/turns`, `${path}/items/msg_other`, '/v1/conversations/conv_other'])
      expect((await app.call('GET', place, options)).status).toBe(404)
    const change = { ...options, body: { metadata: { a: 'b' } } }
    expect((await app.call('POST', path, change)).status).toBe(404)
    expect((await app.call('GET', `/v1/turns/${turn.id}`, options)).status).toBe(403)
    expect((await app.call('DELETE', path, options)).body).toMatchObject({ deleted: true })
    expect((await app.call('GET', path, options)).status).toBe(404)
  })

  test("can also be read by the agent's owner", async () => {
    const { app, one, agentId } = await startVisit()
    const { conversation } = await say(one, 'Hello.')
    const { body } = await app.call('GET', `/v1/conversations/${conversation.id}`)
    expect(body.parley).toMatchObject({ agent_id: agentId, channel: 'widget', title: 'Hello.' })
  })
})

test("an agent key without a visitor token cannot use the ids of a visitor's turn or items", async () => {
  const { app, key, one } = await startVisit()
  const { item, turn } = await say(one, 'Hello.')
  const input = [{ type: 'item_reference', id: item.id }]
  const referred = await app.call('POST', '/v1/responses', { key, body: { input } })
  expect([referred.status, referred.body.error.param]).toEqual([400, 'input[0].id'])
  for (const verb of ['cancel', 'continue'])
    expect((await app.call('POST', `/v1/turns/${turn.id}/${verb}`, { key })).status).toBe(404)
})

describe("the agent's settings", () => {
  test('can prevent visitors from listing and deleting conversations', async () => {
    const { app, key, one } = await startVisit({ visitor: { list: false, delete: false } })
    const { conversation } = await say(one, 'Hello.')
    const deleting = one.visitor.delete.mutate({ conversation: conversation.id })
    await expect(deleting).rejects.toMatchObject(denied(403, 'not_allowed'))
    await expect(one.visitor.conversations.query({})).rejects.toMatchObject(denied(403, 'not_allowed'))
    const options = { key, headers: { 'X-Parley-Visitor': one.token } }
    for (const [method, path] of [
      ['GET', '/v1/conversations'],
      ['DELETE', `/v1/conversations/${conversation.id}`],
    ] as const) {
      const { status, body } = await app.call(method, path, options)
      expect([method, status, body.error.code]).toEqual([method, 403, 'not_allowed'])
    }
    const opened = await one.visitor.open.query({ conversation: conversation.id })
    expect(opened.conversation.id).toBe(conversation.id)
  })

  test('can prevent only listing, or only deleting', async () => {
    const unlisted = await startVisit({ visitor: { list: false } })
    const { conversation } = await say(unlisted.one, 'Hello.')
    await expect(unlisted.one.visitor.conversations.query({})).rejects.toMatchObject(
      denied(403, 'not_allowed'),
    )
    await unlisted.one.visitor.delete.mutate({ conversation: conversation.id })
    await expect(unlisted.one.visitor.open.query({ conversation: conversation.id })).rejects.toMatchObject(
      denied(404),
    )
    const { one } = await startVisit({ visitor: { delete: false } })
    const { conversation: kept } = await say(one, 'Hello.')
    expect((await one.visitor.conversations.query({})).data).toMatchObject([{ id: kept.id }])
    const deleting = one.visitor.delete.mutate({ conversation: kept.id })
    await expect(deleting).rejects.toMatchObject(denied(403, 'not_allowed'))
  })

  test('let visitors who may not list conversations open one by its id', async () => {
    const { app, key, one } = await startVisit({ visitor: { list: false, delete: false } })
    const { conversation } = await say(one, 'Hello.')
    const opened = await one.visitor.open.query({ conversation: conversation.id })
    expect(opened.items[0]).toMatchObject({ text: 'Hello.' })
    const other = await beginSession(app, key)
    await expect(other.visitor.open.query({ conversation: conversation.id })).rejects.toMatchObject(
      denied(404),
    )
  })

  test('determine how long a new session continues the last conversation', async () => {
    const { app, clock, key, one } = await startVisit({ visitor: { resume: '2h' } })
    const { conversation } = await say(one, 'Hello.')
    const open = () => one.visitor.open.query({ conversation: conversation.id })
    await expect.poll(async () => (await open()).turn?.status).toBe('completed')
    const session = () => asVisitor(app, key, one.token).session.mutate({})
    clock.advance(2 * HOUR_SECONDS)
    expect((await session()).conversation?.id).toBe(conversation.id)
    clock.advance(1)
    expect((await session()).conversation).toBeNull()
  })

  test('can be read with the agent key', async () => {
    const notice = { text: 'We store this.', url: 'https://example.org/privacy' }
    const { app, key } = await startVisit({ notice, visitor: { delete: false } })
    const { body } = await app.call('GET', '/v1/agents/me', { key })
    expect(body.conversations).toEqual({
      ...{
        stored: true,
        keep_days: 30,
        notice,
        list: true,
        delete: false,
        rate: true,
        resume_seconds: 86_400,
      },
      handover: { button: false, timeout_seconds: 600 },
    })
  })
})

describe('a visitor whose conversations cannot be stored', () => {
  async function expectNothing(app: TestApp, key: string) {
    const { body } = await app.call('GET', '/v1/agents/me', { key })
    expect(body.conversations).toMatchObject({ stored: false, notice: null })
    const session = asVisitor(app, key).session.mutate({})
    await expect(session).rejects.toMatchObject(denied(400, 'conversations_off'))
  }

  test('cannot start a session if the agent does not store conversations', async () => {
    const app = await startApp()
    await expectNothing(app, (await app.createAgent()).agent_key)
  })

  test('cannot start a session if the operator forbids storage', async () => {
    const app = await startApp({ PARLEY_CONVERSATIONS: 'forbidden' })
    await expectNothing(app, (await app.createAgent(storingAgent())).agent_key)
  })
})

describe('a page', () => {
  test("cannot act for a visitor if the agent's embed.origins do not include its origin", async () => {
    const app = await startApp()
    const yaml = JSON.stringify({
      ...JSON.parse(storingAgent()),
      embed: { origins: ['https://shop.example.org'] },
    })
    const { agent_key: key } = await app.createAgent(yaml)
    for (const [origin, status] of [
      ['https://shop.example.org', 200],
      ['https://evil.example.org', 403],
    ] as const) {
      const headers = { Origin: origin }
      const answer = await app.call('POST', '/trpc/visitor.session', { key, headers, body: { json: {} } })
      expect(answer.status).toBe(status)
    }
  })
})

describe("a visitor's data", () => {
  test('is stored with the first message, and deleted 30 days after the last conversation', async () => {
    const { app, clock, one } = await startVisit({ keep: '1d' })
    const db = await openConversations(app)
    const visitors = () => db.selectFrom('visitors').select(['id', 'kind']).execute()
    expect(await visitors()).toEqual([])
    const { conversation } = await say(one, 'Hello.')
    expect(await visitors()).toEqual([{ id: one.id, kind: 'anonymous' }])
    // The end of a turn counts as activity.
    const open = () => one.visitor.open.query({ conversation: conversation.id })
    await expect.poll(async () => (await open()).turn?.status).toBe('completed')
    clock.advance(29 * DAY_SECONDS)
    await maintain(app)
    expect(await visitors()).toHaveLength(1)
    clock.advance(2 * DAY_SECONDS)
    await maintain(app)
    expect(await visitors()).toEqual([])
  })

  test('must be stored: a message is rejected with 503 while the store fails', async () => {
    const { app, one } = await startVisit()
    const db = await openConversations(app)
    await sql`alter table turns rename to lost_turns`.execute(db)
    const sending = say(one, 'Hello.')
    await expect(sending).rejects.toMatchObject(denied(503, 'service_unavailable'))
    await sql`alter table lost_turns rename to turns`.execute(db)
    await expect(say(one, 'Hello.')).resolves.toMatchObject({ turn: { status: 'in_progress' } })
  })
})
