/** Tests visitors that are named with a parent key, and the visitor data that tools receive. */
import { describe, expect, test } from 'vitest'
import type { HostTool } from '../../../src/server/service.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp } from '../../support/app.ts'
import { behindProxy, claimKey, revealKey } from '../../support/console.ts'
import {
  claimsOf,
  createSecret,
  type IdentityVisit,
  identify,
  identifyingAgent,
  signIdentity,
  signWithSecret,
  startIdentityVisit,
} from '../../support/identities.ts'
import { eventually } from '../../support/process.ts'
import { CHAT } from '../../support/stored-chats.ts'
import { asVisitor, beginSession, say, sayAndWait } from '../../support/visitors.ts'

type ToolContext = Parameters<HostTool['handler']>[1]

interface Seen {
  readonly args: Readonly<Record<string, unknown>>
  readonly visitor: ToolContext['visitor']
}

/** Starts an agent whose tool `whoami` records the visitors for whom it runs. */
async function startWithTool(visitors: object = {}, more: object = {}) {
  const seen: Seen[] = []
  const handler: HostTool['handler'] = (args, { visitor }) => {
    seen.push({ args, visitor })
    return 'done'
  }
  const unlimited = {
    PARLEY_MAX_STREAMS_AGENT: '0',
    PARLEY_MAX_STREAMS_ADDRESS: '0',
    PARLEY_MAX_STREAMS_PARENT: '0',
  }
  const definition = { tools: ['whoami'], ...more }
  const visit = await startIdentityVisit(visitors, unlimited, { tools: { whoami: { handler } }, definition })
  return { ...visit, seen }
}

const callTool = (args: object = {}) => `[[tool:whoami ${JSON.stringify(args)}]]`

/** Sends a chat completion request with the parent key. */
function ask(
  { app, agentId }: Pick<IdentityVisit, 'app' | 'agentId'>,
  content: string,
  more: object = {},
  headers = {},
) {
  const body = { model: `agent/${agentId}`, messages: [{ role: 'user', content }], ...more }
  return app.call('POST', CHAT, { body, headers })
}

describe('a tool', () => {
  test('receives the subject and the listed claims of a verified visitor', async () => {
    const visit = await startWithTool({ claims: ['plan'] })
    const jwt = await signIdentity(visit, { plan: 'gold', name: 'Ana', secret: 'x' })
    const one = await identify(visit, jwt)
    await sayAndWait(one, callTool())
    const expected = { id: one.id, verified: true, subject: 'u42', claims: { plan: 'gold' } }
    expect(visit.seen.map(({ visitor }) => visitor)).toEqual([expected])
    const body = { messages: [{ role: 'user', content: callTool() }] }
    const headers = { 'X-Parley-Visitor': one.token }
    expect((await visit.app.call('POST', CHAT, { key: visit.key, body, headers })).status).toBe(200)
    expect(visit.seen[1]?.visitor).toEqual(expected)
  })

  test('receives an anonymous visitor as unverified, and null if there is no visitor', async () => {
    const visit = await startWithTool()
    const anonymous = await beginSession(visit.app, visit.key)
    await sayAndWait(anonymous, callTool())
    const body = { messages: [{ role: 'user', content: callTool() }], user: 'u42', safety_identifier: 'u42' }
    await visit.app.call('POST', CHAT, { key: visit.key, body })
    await ask(visit, callTool())
    const { id } = anonymous
    expect(visit.seen.map(({ visitor }) => visitor)).toEqual([
      { id, verified: false, subject: id, claims: {} },
      null,
      null,
    ])
  })

  test('receives the identity even if the agent stores nothing', async () => {
    const visit = await startWithTool({}, { conversations: null })
    const one = await identify(visit, await signIdentity(visit))
    const body = { messages: [{ role: 'user', content: callTool() }] }
    const headers = { 'X-Parley-Visitor': one.token }
    expect((await visit.app.call('POST', CHAT, { key: visit.key, body, headers })).status).toBe(200)
    expect(visit.seen).toMatchObject([{ visitor: { id: one.id, subject: 'u42', verified: true } }])
    expect((await visit.app.call('GET', '/v1/visitors')).body.data).toEqual([])
  })

  test("receives the calling visitor's subject, even in interleaved calls by 100 visitors", {
    timeout: 120_000,
  }, async () => {
    const visit = await startWithTool()
    const subjects = Array.from({ length: 100 }, (_, index) => `user-${index}`)
    const visitors = await Promise.all(
      subjects.map(async (sub) => ({ sub, ...(await identify(visit, await signIdentity(visit, { sub }))) })),
    )
    const read = async () => {
      const lists = await Promise.all(visitors.map(({ visitor }) => visitor.conversations.query({})))
      return lists.map(({ data }) => data)
    }
    const conversations: string[] = []
    for (const round of [0, 1]) {
      const sent = await Promise.all(
        visitors.map((one) => say(one, `${callTool({ sub: one.sub })} ${one.sub} ${round}`)),
      )
      conversations.push(...sent.map(({ conversation }) => conversation.id))
      await read()
    }
    await eventually(async () => visit.seen.length, 200)
    for (const { args, visitor } of visit.seen) expect(visitor?.subject).toBe(args.sub)
    const lists = await read()
    for (const [index, data] of lists.entries()) {
      expect(data).toHaveLength(2)
      for (const { title } of data) expect(title).toContain(`${subjects[index]} `)
    }
    const foreign = await Promise.allSettled(
      visitors.map(({ visitor }, index) =>
        visitor.open.query({ conversation: conversations[(index + 1) % 100] ?? '' }),
      ),
    )
    expect(foreign.map(({ status }) => status)).toEqual(subjects.map(() => 'rejected'))
  })
})

describe('a parent key', () => {
  test.for(['safety_identifier', 'user'])('names the visitor of a stored turn with %s', async (field) => {
    const visit = await startWithTool()
    for (const path of [CHAT, '/v1/responses']) {
      const body = { model: `agent/${visit.agentId}`, input: callTool(), [field]: 'u7' }
      const answer =
        path === CHAT
          ? await ask(visit, callTool(), { [field]: 'u7' })
          : await visit.app.call('POST', path, { body })
      expect(answer.status).toBe(200)
    }
    const { body } = await visit.app.call('GET', '/v1/visitors')
    expect(body.data).toMatchObject([
      { kind: 'named', issuer: 'parent_key', subject: 'u7', conversations: 2 },
    ])
    const expected = { id: body.data[0].id, verified: true, subject: 'u7', claims: {} }
    expect(visit.seen.map(({ visitor }) => visitor)).toEqual([expected, expected])
    const listed = await visit.app.call('GET', `/v1/conversations?visitor=${body.data[0].id}`)
    expect(listed.body.data).toHaveLength(2)
    expect(listed.body.data[0].parley).toMatchObject({
      channel: 'api',
      visitor: { kind: 'named', subject: 'u7' },
    })
  })

  test('does not name a visitor with a value that is empty, too long or contains control characters', async () => {
    const visit = await startWithTool()
    for (const user of ['', 'x'.repeat(256), 'a\nb'])
      expect((await ask(visit, 'Hello.', { user })).status).toBe(200)
    expect((await visit.app.call('GET', '/v1/visitors')).body.data).toEqual([])
  })

  test("creates tokens with which a front end can read the visitor's conversations and start new ones", async () => {
    const visit = await startWithTool({ identity: 'required' })
    const { app, key, clock } = visit
    await ask(visit, 'Written by the server.', { safety_identifier: 'u7' })
    const input = { subject: 'u7', name: 'Ana', email: 'ana@example.org', expires_in: 600 }
    const { status, body } = await app.call('POST', '/v1/visitors/tokens', { body: input })
    const now = Math.floor(clock.now() / 1000)
    expect([status, body.expires_at, body.visitor.kind]).toEqual([201, now + 600, 'named'])
    const one = { visitor: asVisitor(app, key, body.token) }
    expect(await one.visitor.conversations.query({})).toMatchObject({
      data: [{ title: 'Written by the server.' }],
    })
    await sayAndWait(one, callTool())
    expect(visit.seen).toMatchObject([{ visitor: { id: body.visitor.id, subject: 'u7' } }])
    const found = await app.call('GET', '/v1/visitors?email=ana%40example.org')
    expect(found.body.data).toMatchObject([{ id: body.visitor.id, name: 'Ana', conversations: 2 }])
    await ask(visit, 'More.', { safety_identifier: 'u7' })
    expect((await app.call('GET', '/v1/visitors')).body.data).toMatchObject([
      { name: 'Ana', email: 'ana@example.org' },
    ])
    clock.advance(600)
    await expect(one.visitor.conversations.query({})).rejects.toMatchObject({
      data: { code: 'identity_expired' },
    })
  })

  test("creates tokens for all its agents, but not for other keys' agents", async () => {
    const visit = await startWithTool()
    const { app, key } = visit
    const { body } = await app.call('POST', '/v1/visitors/tokens', { body: { subject: 'u7' } })
    const second = await app.createAgent(identifyingAgent())
    for (const agentKey of [key, second.agent_key])
      await asVisitor(app, agentKey, body.token).conversations.query({})
    const foreign = await app.createAgent(identifyingAgent(), await createTenant(app))
    const listing = asVisitor(app, foreign.agent_key, body.token).conversations.query({})
    await expect(listing).rejects.toMatchObject({ data: { code: 'visitor_required' } })
    expect((await app.call('POST', '/v1/visitors/tokens', { key, body: { subject: 'u7' } })).status).toBe(403)
  })

  test.for([
    [{}, 'subject'],
    [{ subject: '' }, 'subject'],
    [{ subject: 'x'.repeat(256) }, 'subject'],
    [{ subject: 'u', expires_in: 3601 }, 'expires_in'],
    [{ subject: 'u', expires_in: 0 }, 'expires_in'],
    [{ subject: 'u', phone: '1' }, 'phone'],
  ] as const)('cannot create a token with %j and receives an error that names %s', async ([body, named]) => {
    const { app } = await startIdentityVisit()
    const answer = await app.call('POST', '/v1/visitors/tokens', { body })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(named)])
  })

  test("cannot continue a named visitor's conversation or response for another visitor", async () => {
    const visit = await startWithTool()
    const { app, agentId } = visit
    const respond = (body: object) =>
      app.call('POST', '/v1/responses', { body: { model: `agent/${agentId}`, input: 'Hello.', ...body } })
    const created = await app.call('POST', '/v1/conversations', { body: {} })
    const conversation = created.body.id
    const first = await respond({ conversation, safety_identifier: 'u7' })
    expect(first.status).toBe(200)
    const { body } = await app.call('GET', `/v1/conversations/${conversation}`)
    expect(body.parley.visitor).toMatchObject({ kind: 'named', subject: 'u7' })
    expect((await respond({ conversation, safety_identifier: 'u7' })).status).toBe(200)
    expect((await respond({ conversation, safety_identifier: 'u8' })).status).toBe(404)
    const previous = { previous_response_id: first.body.id }
    const mismatch = await respond({ ...previous, safety_identifier: 'u8' })
    expect([mismatch.status, mismatch.body.error.code]).toEqual([400, 'visitor_mismatch'])
    expect((await respond({ ...previous, safety_identifier: 'u7' })).status).toBe(200)
  })
})

describe('an erasure', () => {
  test('invalidates the tokens of a verified visitor, who returns as a new visitor', async () => {
    const visit = await startWithTool()
    const { app } = visit
    const one = await identify(visit, await signIdentity(visit, { name: 'Ana' }))
    await sayAndWait(one, 'Hello.')
    const { body } = await app.call('DELETE', `/v1/visitors/${one.id}`)
    await eventually(async () => (await app.call('GET', `/v1/erasures/${body.id}`)).body.status, 'done')
    await expect(one.visitor.conversations.query({})).rejects.toMatchObject({
      data: { code: 'visitor_required' },
    })
    expect((await app.call('GET', '/v1/visitors?subject=u42')).body.data).toEqual([])
    const again = await identify(visit, await signIdentity(visit))
    expect(again.id).not.toBe(one.id)
    expect(await again.visitor.conversations.query({})).toMatchObject({ data: [] })
    await sayAndWait(again, 'I am back.')
    expect((await identify(visit, await signIdentity(visit))).id).toBe(again.id)
  })

  test('deletes the turns of a named visitor', async () => {
    const visit = await startWithTool()
    const { app } = visit
    await ask(visit, 'A canary.', { safety_identifier: 'u7' })
    const [visitor] = (await app.call('GET', '/v1/visitors')).body.data
    const { body } = await app.call('DELETE', `/v1/visitors/${visitor.id}`)
    await eventually(async () => (await app.call('GET', `/v1/erasures/${body.id}`)).body.status, 'done')
    expect((await app.call('GET', '/v1/conversations')).body.data).toEqual([])
    expect((await ask(visit, 'Again.', { safety_identifier: 'u7' })).status).toBe(200)
    expect((await app.call('GET', '/v1/visitors')).body.data).toMatchObject([
      { subject: 'u7', conversations: 1 },
    ])
  })
})

describe('a visitor secret', () => {
  test('can be neither read nor used for another agent after its agent is deleted', async () => {
    const visit = await startIdentityVisit()
    const { app, agentId, secret } = visit
    expect((await app.call('DELETE', `/v1/agents/${agentId}`)).status).toBe(200)
    expect((await app.call('GET', `/v1/agents/${agentId}/visitor-secret`)).status).toBe(404)
    const next = await app.createAgent(identifyingAgent())
    const other = { ...visit, key: next.agent_key, agentId: next.agent_id }
    await createSecret(app, next.agent_id)
    const failing = identify(other, await signWithSecret(secret, claimsOf(visit)))
    await expect(failing).rejects.toMatchObject({ data: { code: 'identity_invalid' } })
  })
})

describe('claiming a key', () => {
  test('merges visitors of both keys that have the same identity', async () => {
    const app = await startApp(behindProxy)
    const key = await revealKey(app, 'ada@example.org')
    const agents = [await app.createAgent(identifyingAgent()), await app.createAgent(identifyingAgent(), key)]
    for (const [index, { agent_id: agentId }] of agents.entries()) {
      const body = { model: `agent/${agentId}`, messages: [{ role: 'user', content: 'Hello.' }], user: 'u7' }
      const answer = await app.call('POST', CHAT, { body, ...(index === 1 && { key }) })
      expect(answer.status).toBe(200)
    }
    expect((await app.call('GET', '/v1/visitors')).body.data).toMatchObject([{ conversations: 1 }])
    await claimKey(app, 'ada@example.org', app.key)
    expect((await app.call('GET', '/v1/visitors')).body.data).toMatchObject([
      { subject: 'u7', conversations: 2 },
    ])
  })
})
