/** Tests that the tRPC API for agents behaves like the REST API. */
import { describe, expect, test } from 'vitest'
import { createTenant, FULL_DEFINITION, rpcErrorOf } from '../../support/agents.ts'
import { GREETER, startApp } from '../../support/app.ts'
import { createTypedClient } from '../../support/rpc.ts'

describe('the tRPC API for agents', () => {
  test('creates, lists, reads, replaces, restores and deletes agents, and rotates their keys', async () => {
    const app = await startApp()
    const { agents } = createTypedClient(app)
    const created = await agents.create.mutate({ yaml: FULL_DEFINITION })
    expect(created).toEqual({
      agent_id: expect.stringMatching(/^agent-/),
      agent_key: expect.stringMatching(/^agnt_key-/),
      parent_key: app.key.slice(0, 16),
      created_at: expect.any(Number),
    })
    const { agent_id } = created
    const path = `/v1/agents/${agent_id}`
    expect(await agents.get.query({ agent_id })).toEqual((await app.call('GET', path)).body)
    expect(await agents.list.query({})).toEqual((await app.call('GET', '/v1/agents')).body)
    expect(await agents.list.query({ limit: 1 })).toEqual((await app.call('GET', '/v1/agents?limit=1')).body)
    expect(await createTypedClient(app, created.agent_key).agents.me.query({})).toEqual(
      (await app.call('GET', '/v1/agents/me', { key: created.agent_key })).body,
    )
    expect(await agents.replace.mutate({ agent_id, yaml: GREETER, if_match: '"1"' })).toMatchObject({
      name: 'Greeter',
      agent_key: created.agent_key,
      version: 2,
    })
    expect(await agents.restore.mutate({ agent_id, version: 1 })).toMatchObject({ name: 'Guide', version: 3 })
    expect(await agents.versions.query({ agent_id })).toEqual(
      (await app.call('GET', `${path}/versions`)).body,
    )
    const rotated = await agents.rotateKey.mutate({ agent_id })
    expect(rotated.agent_key).not.toBe(created.agent_key)
    expect((await app.call('GET', '/v1/agents/me', { key: created.agent_key })).status).toBe(401)
    expect(await agents.delete.mutate({ agent_id })).toEqual({ id: agent_id, deleted: true })
    expect((await app.call('GET', path)).status).toBe(404)
  })

  test('accepts Markdown if the format is markdown', async () => {
    const app = await startApp()
    const { agents } = createTypedClient(app)
    const yaml = '---\nname: Marked\n---\n\nBe bold.'
    const { agent_id } = await agents.create.mutate({ yaml, format: 'markdown' })
    expect(await agents.get.query({ agent_id })).toMatchObject({
      yaml,
      markdown: yaml,
      instructions: 'Be bold.',
    })
  })

  test('returns agents whose tools have parameters named constructor and prototype', async () => {
    const app = await startApp()
    const names = ['constructor', 'prototype', 'toString']
    const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]))
    const tool = { name: 'find', description: 'Finds.', inputSchema: { type: 'object', properties } }
    const definition = { name: 'A', instructions: 'B', tools: [tool] }
    const { agent_id, agent_key } = await app.createAgent(JSON.stringify(definition))
    const { agents } = createTypedClient(app)
    const seen = [
      await agents.get.query({ agent_id }),
      (await agents.list.query({})).data[0],
      await createTypedClient(app, agent_key).agents.me.query({}),
    ]
    expect(seen[0]).toEqual((await app.call('GET', `/v1/agents/${agent_id}`)).body)
    expect(seen[1]).toEqual((await app.call('GET', '/v1/agents')).body.data[0])
    expect(seen[2]).toEqual((await app.call('GET', '/v1/agents/me', { key: agent_key })).body)
    for (const each of seen)
      for (const name of names) expect(JSON.stringify(each)).toContain(`"${name}":{"type":"string"}`)
  })

  test('rejects the same input as the REST API does, with the same messages', async () => {
    const app = await startApp()
    const { agents } = createTypedClient(app)
    const { agent_id } = await app.createAgent()
    const path = `/v1/agents/${agent_id}`
    const tooLong = `${GREETER}#${'x'.repeat(256 * 1024)}`
    const wrong = { name: 'X' } as unknown as string
    const pairs = [
      [
        () => agents.create.mutate({ yaml: 'name: X\n' }),
        app.call('POST', '/v1/agents', { body: { yaml: 'name: X\n' } }),
      ],
      [
        () => agents.create.mutate({ yaml: tooLong }),
        app.call('POST', '/v1/agents', { body: { yaml: tooLong } }),
      ],
      [
        () => agents.create.mutate({ yaml: wrong }),
        app.call('POST', '/v1/agents', { body: { yaml: wrong } }),
      ],
      [() => agents.list.query({ limit: 0 }), app.call('GET', '/v1/agents?limit=0')],
      [() => agents.list.query({ after: 'agent-x' }), app.call('GET', '/v1/agents?after=agent-x')],
      [() => agents.get.query({ agent_id: 'agent-x' }), app.call('GET', '/v1/agents/agent-x')],
      [
        () => agents.replace.mutate({ agent_id, yaml: GREETER, if_match: '"9"' }),
        app.call('PUT', path, { body: { yaml: GREETER }, headers: { 'If-Match': '"9"' } }),
      ],
      [() => agents.delete.mutate({ agent_id: 'agent-x' }), app.call('DELETE', '/v1/agents/agent-x')],
      [() => agents.restore.mutate({ agent_id, version: 0 }), app.call('POST', `${path}/versions/0/restore`)],
      [() => agents.restore.mutate({ agent_id, version: 5 }), app.call('POST', `${path}/versions/5/restore`)],
      [
        () => agents.rotateKey.mutate({ agent_id, overlap_seconds: -1 }),
        app.call('POST', `${path}/rotate-key`, { body: { overlap_seconds: -1 } }),
      ],
    ] as const
    for (const [typed, rest] of pairs) {
      const { status, body } = await rest
      expect(await rpcErrorOf(typed())).toEqual({ status, code: body.code, message: body.error })
    }
    expect((await app.call('GET', path)).body.version).toBe(1)
  })

  test('hides agents from other tenants', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { agents } = createTypedClient(app, await createTenant(app))
    expect(await agents.list.query({})).toEqual({ object: 'list', data: [] })
    const calls = [
      () => agents.get.query({ agent_id }),
      () => agents.replace.mutate({ agent_id, yaml: GREETER }),
      () => agents.delete.mutate({ agent_id }),
      () => agents.versions.query({ agent_id }),
      () => agents.restore.mutate({ agent_id, version: 1 }),
      () => agents.rotateKey.mutate({ agent_id }),
    ]
    for (const call of calls)
      expect(await rpcErrorOf(call())).toEqual({
        status: 404,
        code: 'not_found',
        message: 'Agent not found.',
      })
  })

  test('accepts an agent key only for agents.me', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    const { agents } = createTypedClient(app, agent_key)
    expect(await agents.me.query({})).toMatchObject({ id: agent_id })
    const calls = [
      () => agents.create.mutate({ yaml: GREETER }),
      () => agents.list.query({}),
      () => agents.get.query({ agent_id }),
      () => agents.replace.mutate({ agent_id, yaml: GREETER }),
      () => agents.delete.mutate({ agent_id }),
      () => agents.versions.query({ agent_id }),
      () => agents.restore.mutate({ agent_id, version: 1 }),
      () => agents.rotateKey.mutate({ agent_id }),
    ]
    for (const call of calls)
      expect(await rpcErrorOf(call())).toMatchObject({ status: 401, code: 'invalid_api_key' })
  })
})
