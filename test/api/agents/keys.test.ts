/** Tests the rotation of agent keys, changes to their parent key, and `/v1/agents/me`. */
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { revokeParentKey } from '../../../src/identity/keys.ts'
import { createTenant, FULL_DEFINITION } from '../../support/agents.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

/** The conversation settings of an agent whose definition has no `conversations`. */
const notStored = {
  stored: false,
  keep_days: null,
  notice: null,
  list: false,
  delete: false,
  rate: false,
  resume_seconds: 0,
  handover: { button: false, timeout_seconds: 0 },
}

const me = (app: TestApp, key: string) => app.call('GET', '/v1/agents/me', { key })
const publicPart = (key: string) => key.slice(0, 'agnt_key-'.length + 12)

async function statusesOf(app: TestApp, ...keys: string[]): Promise<number[]> {
  const answers = await Promise.all(keys.map((key) => me(app, key)))
  return answers.map(({ status }) => status)
}

describe('rotating an agent key', () => {
  test.each([
    ['without a body', undefined],
    ['with an empty body', {}],
    ['with an overlap of 0', { overlap_seconds: 0 }],
  ])('immediately invalidates the old key when the request is sent %s', async (_what, body) => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const { agent_id, agent_key } = await app.createAgent()
    expect(await statusesOf(app, agent_key)).toEqual([200])
    const rotated = await app.call(
      'POST',
      `/v1/agents/${agent_id}/rotate-key`,
      body === undefined ? {} : { body },
    )
    expect([rotated.status, rotated.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(rotated.body).toEqual({
      agent_id,
      agent_key: expect.stringMatching(/^agnt_key-[0-9A-Za-z]{61}$/),
      key_hint: `agnt_key-…${rotated.body.agent_key.slice(-4)}`,
      rotated_at: 1_800_000_000,
      previous_valid_until: 1_800_000_000,
    })
    expect(rotated.body.agent_key).not.toBe(agent_key)
    expect(publicPart(rotated.body.agent_key)).toBe(publicPart(agent_key))
    expect(await statusesOf(app, agent_key, rotated.body.agent_key)).toEqual([401, 200])
  })

  test('accepts a JSON content type without a body', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const headers = { 'Content-Type': 'application/json' }
    expect((await app.call('POST', `/v1/agents/${agent_id}/rotate-key`, { headers })).status).toBe(200)
  })

  test('keeps the old key valid until exactly the end of the overlap', async () => {
    const clock = createFakeClock(1_800_000_000)
    const app = await startApp({}, { clock })
    const { agent_id, agent_key: old } = await app.createAgent()
    const rotated = await app.call('POST', `/v1/agents/${agent_id}/rotate-key`, {
      body: { overlap_seconds: 60 },
    })
    expect(rotated.body.previous_valid_until).toBe(1_800_000_060)
    const fresh = rotated.body.agent_key
    expect(await statusesOf(app, old, fresh)).toEqual([200, 200])
    clock.advance(59)
    expect(await statusesOf(app, old, fresh)).toEqual([200, 200])
    clock.advance(1)
    expect(await statusesOf(app, old, fresh)).toEqual([401, 200])
  })

  test('invalidates all earlier keys if no overlap is requested, even during an earlier overlap', async () => {
    const app = await startApp({}, { clock: createFakeClock() })
    const { agent_id, agent_key: first } = await app.createAgent()
    const path = `/v1/agents/${agent_id}/rotate-key`
    const { agent_key: second } = (await app.call('POST', path, { body: { overlap_seconds: 3600 } })).body
    expect(await statusesOf(app, first, second)).toEqual([200, 200])
    const { agent_key: third } = (await app.call('POST', path)).body
    expect(await statusesOf(app, first, second, third)).toEqual([401, 401, 200])
  })

  test('does not extend an earlier overlap', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const { agent_id, agent_key: first } = await app.createAgent()
    const path = `/v1/agents/${agent_id}/rotate-key`
    const { agent_key: second } = (await app.call('POST', path, { body: { overlap_seconds: 60 } })).body
    const { agent_key: third } = (await app.call('POST', path, { body: { overlap_seconds: 3600 } })).body
    clock.advance(60)
    expect(await statusesOf(app, first, second, third)).toEqual([401, 200, 200])
  })

  test('changes the key or hint that is returned when the agent is listed, read or replaced', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    await app.call('GET', '/v1/agents')
    const { agent_key, key_hint } = (await app.call('POST', `/v1/agents/${agent_id}/rotate-key`)).body
    expect((await app.call('GET', '/v1/agents')).body.data[0].agent_key).toBe(agent_key)
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).body).toMatchObject({ key_hint, version: 1 })
    const put = await app.call('PUT', `/v1/agents/${agent_id}`, { body: { yaml: GREETER } })
    expect(put.body.agent_key).toBe(agent_key)
  })

  test.each([
    [{ overlap_seconds: 2_592_000 }, 200],
    [{ overlap_seconds: 2_592_001 }, 400],
    [{ overlap_seconds: -1 }, 400],
    [{ overlap_seconds: 1.5 }, 400],
    [{ overlap_seconds: '60' }, 400],
    [{ overlap_seconds: null }, 400],
    [{ overlap: 60 }, 400],
  ])('with the body %j returns %i', async (body, expected) => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    const answer = await app.call('POST', `/v1/agents/${agent_id}/rotate-key`, { body })
    expect(answer.status).toBe(expected)
    if (expected === 200) return
    expect(answer.body).toEqual({
      error: expect.stringContaining(Object.keys(body)[0] ?? ''),
      code: 'invalid_value',
    })
    expect(await statusesOf(app, agent_key)).toEqual([200])
  })

  test("returns 404 for another tenant's agent and does not change its key", async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    const key = await createTenant(app)
    expect((await app.call('POST', `/v1/agents/${agent_id}/rotate-key`, { key })).status).toBe(404)
    expect(await statusesOf(app, agent_key)).toEqual([200])
  })
})

describe('the parent key of an agent', () => {
  test('can be rotated without affecting the agent or its key', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    const before = await app.call('GET', `/v1/agents/${agent_id}`)
    const { key } = (await app.call('POST', '/v1/keys/rotate')).body
    expect((await app.call('GET', `/v1/agents/${agent_id}`, { key })).text).toBe(before.text)
    expect((await app.call('GET', '/v1/agents')).status).toBe(401)
    expect(await statusesOf(app, agent_key)).toEqual([200])
  })

  test('invalidates the agent key when it is revoked', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    expect(await statusesOf(app, agent_key)).toEqual([200])
    await revokeParentKey(app.service.deps, serviceActor, app.key.slice('svc_'.length).slice(0, 12))
    expect(await statusesOf(app, agent_key)).toEqual([401])
    expect((await app.call('GET', '/v1/agents')).status).toBe(401)
  })
})

describe('/v1/agents/me', () => {
  test('returns the fields that the widget needs but not the instructions', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent(FULL_DEFINITION)
    const { status, headers, body, text } = await me(app, agent_key)
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toEqual({
      id: agent_id,
      name: 'Guide',
      model: 'mock',
      tools: [
        { name: 'search', description: '', inputSchema: { type: 'object', properties: {} } },
        {
          name: 'look_up',
          description: 'Finds an order.',
          inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
        },
      ],
      pageTools: { blocked: ['deleteEverything'] },
      greeting: 'Hello there!',
      title: 'Ask me',
      starters: ['What is new?', 'Help me'],
      theme: { primaryColor: '#0f766e', headerStyle: 'solid', teaser: 'Questions?' },
      disclaimer: { text: null, url: null },
      dictation: false,
      readAloud: false,
      attachments: null,
      followUps: false,
      imageHosts: [],
      identity: 'none',
      conversations: notStored,
    })
    expect(text).not.toContain('Help people')
  })

  test('returns defaults for fields the definition omits', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent(
      `${GREETER}tools: [{name: bare}]\npageTools: {restricted: []}\n`,
    )
    expect((await me(app, agent_key)).body).toEqual({
      id: agent_id,
      name: 'Greeter',
      model: 'mock',
      tools: [{ name: 'bare', description: '', inputSchema: { type: 'object', properties: {} } }],
      pageTools: { restricted: [] },
      greeting: null,
      title: null,
      starters: [],
      theme: {},
      disclaimer: { text: null, url: null },
      dictation: false,
      readAloud: false,
      attachments: null,
      followUps: false,
      imageHosts: [],
      identity: 'none',
      conversations: notStored,
    })
    await app.call('PUT', `/v1/agents/${agent_id}`, { body: { yaml: GREETER } })
    expect((await me(app, agent_key)).body).toMatchObject({ tools: [], pageTools: 'all' })
  })

  test('returns 403 for a parent key', async () => {
    const app = await startApp()
    const { status, body } = await me(app, app.key)
    expect([status, body]).toEqual([
      403,
      { error: expect.stringContaining('agent key'), code: 'insufficient_permissions' },
    ])
  })

  test('returns 401 without a key', async () => {
    const app = await startApp()
    expect(await app.call('GET', '/v1/agents/me', { key: null })).toMatchObject({
      status: 401,
      body: { error: expect.any(String), code: 'missing_api_key' },
    })
  })

  test.each(['PUT', 'DELETE'])('returns 405 for %s', async (method) => {
    const app = await startApp()
    const { status, headers, body } = await app.call(
      method,
      '/v1/agents/me',
      method === 'PUT' ? { body: {} } : {},
    )
    expect([status, headers.get('allow'), body.code]).toEqual([
      405,
      'GET, HEAD, OPTIONS',
      'method_not_allowed',
    ])
  })
})
