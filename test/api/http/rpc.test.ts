/** Tests the tRPC API with the typed client and with hand-written calls. */
import { TRPCClientError } from '@trpc/client'
import { describe, expect, test } from 'vitest'
import { listOperations } from '../../../src/server/api.ts'
import { startApp } from '../../support/app.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'
import { callProcedure, createTypedClient } from '../../support/rpc.ts'

const yaml = 'name: Guide\ninstructions: Help.\n'
const hello = { model: 'mock', messages: [{ role: 'user' as const, content: 'hello' }] }

describe('the typed client', () => {
  test('can create, list and read agents', async () => {
    const client = createTypedClient(await startApp())
    const created = await client.agents.create.mutate({ yaml })
    const list = await client.agents.list.query({})
    const agent = await client.agents.get.query({ agent_id: created.agent_id })
    expect(created.agent_key).toMatch(/^agnt_key-/)
    expect(list.data.map(({ id }) => id)).toEqual([created.agent_id])
    expect(agent).toMatchObject({ agent_id: created.agent_id, instructions: 'Help.' })
  })

  test('reads the same data as a REST client', async () => {
    const app = await startApp()
    const client = createTypedClient(app)
    const { agent_id: id } = await app.createAgent()
    expect(await client.models.list.query({})).toEqual((await app.call('GET', '/v1/models')).body)
    expect(await client.keys.validate.query({})).toEqual({ valid: true, kind: 'parent' })
    expect(await client.agents.get.query({ agent_id: id })).toEqual(
      (await app.call('GET', `/v1/agents/${id}`)).body,
    )
    expect(await client.models.get.query({ model_id: `agent/${id}` })).toMatchObject({ id: `agent/${id}` })
  })

  test('with an agent key can call agents.me but not keys.rotate or agents.list', async () => {
    const app = await startApp()
    const { agent_id: id, agent_key: key } = await app.createAgent()
    const client = createTypedClient(app, key)
    expect(await client.agents.me.query({})).toMatchObject({ id, name: 'Greeter' })
    await expect(client.keys.rotate.mutate({})).rejects.toMatchObject({ data: { httpStatus: 403 } })
    await expect(client.agents.list.query({})).rejects.toMatchObject({ data: { httpStatus: 401 } })
  })

  test('can stream a chat', async () => {
    const client = createTypedClient(await startApp())
    const text: string[] = []
    for await (const chunks of await client.chat.stream.mutate(hello)) {
      for (const chunk of chunks) text.push(chunk.choices[0]?.delta.content ?? '')
    }
    expect(text.join('')).toBe('You said: hello')
  })

  test('may leave optional fields undefined', async () => {
    const client = createTypedClient(await startApp())
    expect((await client.agents.list.query({ limit: undefined, after: undefined })).data).toEqual([])
  })

  test('may omit the input if every field is optional', async () => {
    const client = createTypedClient(await startApp())
    expect(await client.agents.list.query()).toEqual(await client.agents.list.query({}))
    expect(await client.files.list.query()).toEqual(await client.files.list.query({}))
    expect(await client.models.list.query()).toEqual(await client.models.list.query({}))
    // @ts-expect-error: agents.get requires an id.
    const error = await client.agents.get.query().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ data: { reason: 'invalid_value', param: 'agent_id' } })
    expect(await client.keys.rotate.mutate()).toMatchObject({ key: expect.stringMatching(/^svc_/) })
  })

  test('receives the reason for a failed call', async () => {
    const client = createTypedClient(await startApp())
    const error = await client.agents.create.mutate({ yaml: 'name: [' }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TRPCClientError)
    expect(error).toMatchObject({
      message: expect.stringMatching(/line \d/),
      data: { reason: 'invalid_value', httpStatus: 400, path: 'agents.create' },
    })
  })
})

test('every operation has a tRPC procedure unless it is REST-only', async () => {
  const app = await startApp()
  for (const { name, operation } of listOperations()) {
    const { status, body } = await callProcedure(app, name)
    if (operation.rpc !== false) {
      expect(status).not.toBe(405)
      if (status === 404) expect(body.error.json.message).not.toBe('Procedure not found.')
      continue
    }
    const { message, data } = body.error.json
    expect({ status, message, reason: data.reason }).toEqual({
      status: 404,
      message: 'Procedure not found.',
      reason: 'not_found',
    })
  }
})

describe('a batch of tRPC calls', () => {
  const batch = (count: number) => {
    const paths = Array.from({ length: count }, () => 'keys.validate').join(',')
    const input = Object.fromEntries(Array.from({ length: count }, (_, index) => [index, { json: {} }]))
    return `/trpc/${paths}?batch=1&input=${encodeURIComponent(JSON.stringify(input))}`
  }

  test('may contain ten calls', async () => {
    const app = await startApp()
    const { status, body } = await app.call('GET', batch(10))
    expect(status).toBe(200)
    expect(body).toHaveLength(10)
  })

  test('with eleven calls is rejected, and none of the calls runs', async () => {
    const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '1' })
    const refused = await app.call('GET', batch(11))
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { json: { data: { reason: 'invalid_value' } } } },
    })
    expect((await app.call('GET', '/v1/models')).status).toBe(200)
  })

  test('returns the result of each call separately', async () => {
    const app = await startApp()
    const paths = 'agents.create,agents.delete'
    const body = { 0: { json: { yaml } }, 1: { json: { agent_id: 'agent-none' } } }
    const answer = await app.call('POST', `/trpc/${paths}?batch=1`, { body })
    expect(answer.status).toBe(207)
    expect(answer.body[0].result.data.json.agent_id).toMatch(/^agent-/)
    expect(answer.body[1].error.json.data).toMatchObject({ reason: 'not_found', httpStatus: 404 })
  })

  test('must not mix queries and mutations', async () => {
    const app = await startApp()
    const answer = await app.call('POST', '/trpc/agents.create,agents.list?batch=1', { body: {} })
    expect(answer.status).toBe(400)
  })
})

describe('a malformed tRPC call', () => {
  const raw: [name: string, method: string, path: string, body: unknown, status: number][] = [
    ['returns 405 for POST to a query', 'POST', 'models.list', {}, 405],
    ['returns 405 for GET to a mutation', 'GET', 'agents.create', undefined, 405],
    ['returns 405 for another method', 'PUT', 'agents.create', {}, 405],
    ['returns 404 without a name', 'GET', '', undefined, 404],
    ['returns 404 for the name __proto__', 'GET', '__proto__', undefined, 404],
    ['returns 404 for the name of a router', 'GET', 'agents', undefined, 404],
    ['returns 404 for a parent folder', 'GET', '%2e%2e%2fv1', undefined, 404],
    ['returns 400 for a name that cannot be decoded', 'GET', '%zz', undefined, 400],
    ['returns 400 for input that is not JSON', 'GET', 'models.list?input={', undefined, 400],
    ['returns 400 for a bare value instead of an envelope', 'GET', 'models.list?input=5', undefined, 400],
    ['returns 400 for an empty envelope', 'GET', 'models.list?input={}', undefined, 400],
    [
      'returns 400 for deeply nested input',
      'GET',
      `models.list?input=${'['.repeat(6000)}${']'.repeat(6000)}`,
      undefined,
      400,
    ],
    [
      'returns 400 for a reference to a class',
      'POST',
      'agents.create',
      { json: { yaml }, meta: { values: [['class', 'X']] } },
      400,
    ],
    [
      'returns 400 for a path through a prototype',
      'POST',
      'agents.create',
      { json: { yaml }, meta: { values: { '__proto__.x': ['Date'] } } },
      400,
    ],
    [
      'returns 400 for a circular reference',
      'POST',
      'chat.stream',
      { json: { ...hello, x: {} }, meta: { referentialEqualities: { x: ['x.x'] } } },
      400,
    ],
    [
      'returns 400 for a bigint',
      'POST',
      'chat.stream',
      { json: { ...hello, x: '1' }, meta: { values: { x: ['bigint'] } } },
      400,
    ],
  ]

  test.each(raw)('%s', async (_name, method, path, body, status) => {
    const { log, lines } = createLineLog()
    const app = await startApp({}, { log })
    const answer = await app.call(method, `/trpc/${path}`, { body })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(Object.keys(answer.body.error.json.data)).not.toContain('stack')
    expect(answer.text).not.toMatch(/\.m?[jt]s:|node_modules/)
    expect(lines.filter((line) => JSON.parse(line).level >= 40)).toEqual([])
  })

  test('returns 415 if it requests a stream that the client does not accept', async () => {
    const app = await startApp({ PARLEY_MAX_STREAMS_PARENT: '1' })
    expect((await callProcedure(app, 'chat.stream', hello)).status).toBe(415)
    expect((await app.stream(hello)).isDone).toBe(true)
  })

  test('returns 400 if its Host header is invalid', async () => {
    const app = await startApp()
    const connection = await RawConnection.open(app)
    connection.send(toRequest('GET /trpc/models.list', ['Host: [', 'Connection: close']))
    expect(await connection.ends()).toMatch(/^HTTP\/1.1 400 /)
  })

  test('returns 415 without CORS headers if it is a preflight request from another origin', async () => {
    const app = await startApp()
    const headers = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' }
    const answer = await app.call('OPTIONS', '/trpc/agents.create', { key: null, headers })
    expect(answer.status).toBe(415)
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})

test('a tRPC response that violates its schema is replaced by an internal error without details', async () => {
  const { log, lines } = createLineLog()
  const app = await startApp({}, { log })
  const { agent_id: id } = await app.createAgent()
  await app.service.deps.db
    .updateTable('agents')
    .set({ created_at: 2 ** 60 })
    .where('id', '=', id)
    .execute()
  app.service.deps.agents.invalidate()
  const answer = await callProcedure(app, 'models.get', { model_id: `agent/${id}` })
  expect(answer.status).toBe(500)
  expect(answer.body.error.json).toMatchObject({
    message: 'Internal server error.',
    data: { reason: 'internal_error', param: null },
  })
  expect(lines.filter((line) => JSON.parse(line).level >= 50)).toHaveLength(1)
})
