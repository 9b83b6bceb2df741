/** Tests how agents are created, read, stored and deleted over REST. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mintKey } from '../../../src/lib/api-key.ts'
import { FULL_DEFINITION, listIds, sendDefinition } from '../../support/agents.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'
import { failOnChange, readTables } from '../../support/database.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createTypedClient } from '../../support/rpc.ts'

const chat = (app: TestApp, key: string) =>
  app.call('POST', '/v1/chat/completions', { key, body: { messages: [{ role: 'user', content: 'hi' }] } })

describe('creating an agent', () => {
  test('returns 201 with the id, key, owner and creation time, and forbids caching', async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const { status, headers, body } = await sendDefinition(
      app,
      'POST',
      '/v1/agents',
      'application/yaml',
      GREETER,
    )
    expect(status).toBe(201)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-type')).toBe('application/json')
    expect(body).toEqual({
      agent_id: expect.stringMatching(/^agent-[0-9A-Za-z]{20}$/),
      agent_key: expect.stringMatching(/^agnt_key-[0-9A-Za-z]{61}$/),
      parent_key: app.key.slice(0, 'svc_'.length + 12),
      created_at: 1_800_000_000,
    })
  })

  test('ignores unknown fields in a JSON body', async () => {
    const app = await startApp()
    const yaml = `${GREETER}color: red\n`
    const created = await app.call('POST', '/v1/agents', { body: { yaml, name: 'Other' } })
    expect(created.status).toBe(201)
    const path = `/v1/agents/${created.body.agent_id}`
    expect((await app.call('PUT', path, { body: { yaml, name: 'Other' } })).status).toBe(200)
    expect((await app.call('GET', path)).body).toMatchObject({ yaml, version: 2 })
    const typed = createTypedClient(app).agents
    expect(await typed.create.mutate({ yaml, ...{ name: 'Other' } })).toHaveProperty('agent_key')
  })

  test('returns a key that is immediately valid for chats', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    expect((await chat(app, agent_key)).status).toBe(200)
  })

  test('stores neither an agent nor a key if the database fails between the two inserts', async () => {
    const app = await startApp()
    const { db } = app.service.deps
    await app.createAgent()
    const stopFailing = await failOnChange(db, 'insert on credentials', 'disk on fire')
    const { status, body } = await sendDefinition(app, 'POST', '/v1/agents', 'application/yaml', GREETER)
    expect(status).toBe(500)
    expect(body).toEqual({ error: expect.not.stringContaining('fire'), code: 'internal_error' })
    await stopFailing()
    expect(await listIds(app)).toHaveLength(1)
    expect(await db.selectFrom('agents').select('id').execute()).toHaveLength(1)
    expect(
      await db.selectFrom('credentials').select('digest').where('kind', '=', 'agent').execute(),
    ).toHaveLength(1)
    await app.createAgent()
    expect(await listIds(app)).toHaveLength(2)
  })
})

describe('reading an agent', () => {
  test('returns every field of the agent except its key', async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const { agent_id, agent_key } = await app.createAgent(FULL_DEFINITION)
    const { status, headers, body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect(status).toBe(200)
    expect(headers.get('etag')).toBe('"1"')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(body).toEqual({
      agent_id,
      parent_key: app.key.slice(0, 16),
      created_at: 1_800_000_000,
      markdown: expect.stringMatching(
        /^---\n# Support, first line\nname: Guide\n[\s\S]*---\n\nHelp people\.\nUse look_up for orders\.\n$/,
      ),
      definition: {
        name: 'Guide',
        model: 'mock',
        temperature: 1.25,
        tools: [
          'search',
          {
            name: 'look_up',
            description: 'Finds an order.',
            inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
          },
        ],
        behavior: { tone: 'calm', rules: ['Be brief.', 'Say please.'] },
      },
      instructions: 'Help people.\nUse look_up for orders.\n',
      format: 'yaml',
      yaml: FULL_DEFINITION,
      version: 1,
      key_hint: `agnt_key-…${agent_key.slice(-4)}`,
    })
  })

  test('returns conversation settings, with defaults for those that the definition omits', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent(
      `${GREETER}conversations: {keep: 30d, toolData: names, handover: {tool: false}}\n`,
    )
    const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect(body.definition.conversations).toEqual({
      keep: '30d',
      onDisconnect: 'cancel',
      toolData: 'names',
      visitor: { list: true, delete: true, rate: true, resume: '24h' },
      history: { turns: 40, tokens: 16_000 },
      handover: {
        ...{ button: true, tool: false, timeout: '10m', showName: true },
        whenNobody: 'Nobody is available.',
      },
    })
  })

  test('returns defaults for fields the definition omits', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect(body.definition).toEqual({ name: 'Greeter', model: 'mock', temperature: 0.7, tools: [] })
  })

  test('returns the default model when the definition does not set one', async () => {
    const app = await startApp({ PARLEY_DEFAULT_MODEL: 'house-model' })
    const { agent_id, agent_key } = await app.createAgent()
    const named = await app.createAgent(`${GREETER}model: other-model\n`)
    const models = async (id: string, key: string) => {
      const put = { body: { yaml: (await app.call('GET', `/v1/agents/${id}`)).body.yaml } }
      return [
        (await app.call('GET', `/v1/agents/${id}`)).body.definition.model,
        (await app.call('GET', '/v1/agents/me', { key })).body.model,
        (await app.call('PUT', `/v1/agents/${id}`, put)).body.model,
      ]
    }
    expect(new Set(await models(agent_id, agent_key))).toEqual(new Set(['house-model']))
    expect(new Set(await models(named.agent_id, named.agent_key))).toEqual(new Set(['other-model']))
    const list = await app.call('GET', '/v1/agents')
    expect(list.body.data.map(({ model }: { model: string }) => model)).toEqual([
      'other-model',
      'house-model',
    ])
  })

  test('returns the status and ETag without a body when the method is HEAD', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { status, headers, text } = await app.call('HEAD', `/v1/agents/${agent_id}`)
    expect([status, headers.get('etag'), text]).toEqual([200, '"1"', ''])
  })
})

describe('stored agents', () => {
  test('survive a restart unchanged, and new agents are listed before them', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'parley-agents-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const env = {
      PARLEY_DATA_DIR: join(folder, 'data'),
      PARLEY_PARENT_KEY: mintKey('parent', randomBytes).text,
    }
    const before = await startApp(env)
    const { agent_id, agent_key } = await before.createAgent(FULL_DEFINITION)
    await before.call('PUT', `/v1/agents/${agent_id}`, { body: { yaml: GREETER } })
    await before.createAgent()
    const paths = ['', `/${agent_id}`, `/${agent_id}/versions`].map((path) => `/v1/agents${path}`)
    const answers = await Promise.all(paths.map((path) => before.call('GET', path)))
    await before.close()
    const after = await startApp(env)
    for (const [index, path] of paths.entries())
      expect((await after.call('GET', path)).text).toBe(answers[index]?.text)
    expect((await chat(after, agent_key)).status).toBe(200)
    const newest = await after.createAgent()
    expect((await listIds(after))[0]).toBe(newest.agent_id)
  })

  test('contain no agent key secret in plain text or base64', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    const tables = ['agents', 'agent_versions', 'credentials', 'parent_keys', 'audit_events'] as const
    const stored = JSON.stringify(await readTables(app.service.deps.db, tables))
    expect(stored).toContain(agent_id)
    const secret = agent_key.slice('agnt_key-'.length + 12)
    for (const part of [secret, secret.slice(0, 16), Buffer.from(agent_key).toString('base64').slice(0, 24)])
      expect(stored).not.toContain(part)
  })
})

describe('deleting an agent', () => {
  test('makes the agent and its key unusable immediately', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    const other = await app.createAgent()
    expect((await chat(app, agent_key)).status).toBe(200)
    const { status, body } = await app.call('DELETE', `/v1/agents/${agent_id}`)
    expect([status, body]).toEqual([200, { id: agent_id, deleted: true }])
    expect(await chat(app, agent_key)).toMatchObject({
      status: 401,
      body: { error: { type: 'authentication_error', code: 'invalid_api_key' } },
    })
    expect(await app.call('GET', '/v1/agents/me', { key: agent_key })).toMatchObject({
      status: 401,
      body: { error: expect.any(String), code: 'invalid_api_key' },
    })
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).status).toBe(404)
    expect(await listIds(app)).toEqual([other.agent_id])
    expect((await chat(app, other.agent_key)).status).toBe(200)
  })

  test("also deletes the agent's versions and credentials", async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    await app.call('PUT', `/v1/agents/${agent_id}`, { body: { yaml: GREETER } })
    await app.call('POST', `/v1/agents/${agent_id}/rotate-key`, { body: { overlap_seconds: 60 } })
    await app.call('DELETE', `/v1/agents/${agent_id}`)
    const { db } = app.service.deps
    expect(await db.selectFrom('agent_versions').selectAll().execute()).toEqual([])
    expect(await db.selectFrom('credentials').select('kind').execute()).toEqual([{ kind: 'parent' }])
  })

  test('returns 404 for an agent that is already deleted', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    await app.call('DELETE', `/v1/agents/${agent_id}`)
    expect(await app.call('DELETE', `/v1/agents/${agent_id}`)).toMatchObject({
      status: 404,
      body: { error: 'Agent not found.', code: 'not_found' },
    })
  })

  test('succeeds with a JSON content type and no body', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const headers = { 'Content-Type': 'application/json' }
    expect((await app.call('DELETE', `/v1/agents/${agent_id}`, { headers })).status).toBe(200)
  })
})
