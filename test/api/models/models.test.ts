/** Tests how models are listed and found by id, with and without a gateway. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { startUpstream, type Upstream } from '../../support/start-upstream.ts'

const idsOf = async (app: TestApp, key = app.key): Promise<string[]> =>
  (await app.call('GET', '/v1/models', { key })).body.data.map(({ id }: { id: string }) => id)
const say = (model: string) => ({ model, messages: [{ role: 'user', content: 'hello' }] })

test('the typed client can list the chat models that an agent may use', async () => {
  const app = await startApp()
  const choices = await createTypedClient(app).models.choices.query()
  expect(choices).toEqual([{ provider: 'mock', model: 'mock', id: 'mock' }])
})

describe('the model list', () => {
  test('matches the format of the OpenAI API', async () => {
    const app = await startApp()
    const { body } = await app.call('GET', '/v1/models')
    expect(body).toEqual({
      object: 'list',
      data: [
        { id: 'mock', object: 'model', created: expect.any(Number), owned_by: 'parley', provider: 'mock' },
        {
          id: 'mock-embedding',
          object: 'model',
          created: expect.any(Number),
          owned_by: 'parley',
          provider: 'mock',
        },
      ],
    })
    for (const { created } of body.data) expect(Number.isInteger(created)).toBe(true)
  })

  test('is compatible with the official client', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const page = await app.openai().models.list()
    expect(page.data.map((model) => model.id)).toEqual(['mock', 'mock-embedding', `agent/${id}`])
    expect(await app.openai().models.retrieve(`agent/${id}`)).toMatchObject({
      object: 'model',
      owned_by: 'parley',
    })
  })

  test("lists only the key's agents, newest first, after the models", async () => {
    const app = await startApp()
    const other = await createTenant(app)
    const [first, second] = [await app.createAgent(), await app.createAgent()]
    const foreign = await app.createAgent(undefined, other)
    expect(await idsOf(app)).toEqual([
      'mock',
      'mock-embedding',
      `agent/${second.agent_id}`,
      `agent/${first.agent_id}`,
    ])
    expect(await idsOf(app, other)).toEqual(['mock', 'mock-embedding', `agent/${foreign.agent_id}`])
  })

  test("lists only the key's own agent if the key is an agent key", async () => {
    const app = await startApp()
    const [own, sister] = [await app.createAgent(), await app.createAgent()]
    const key = own.agent_key
    expect(await idsOf(app, key)).toEqual(['mock', 'mock-embedding', `agent/${own.agent_id}`])
    expect((await app.call('GET', `/v1/models/agent/${own.agent_id}`, { key })).status).toBe(200)
    expect((await app.call('GET', `/v1/models/agent/${sister.agent_id}`, { key })).status).toBe(404)
  })

  test('immediately includes created agents and omits deleted ones', async () => {
    const app = await startApp()
    expect(await idsOf(app)).toHaveLength(2)
    const { agent_id: id } = await app.createAgent()
    expect(await idsOf(app)).toEqual(['mock', 'mock-embedding', `agent/${id}`])
    await app.call('DELETE', `/v1/agents/${id}`)
    expect(await idsOf(app)).toHaveLength(2)
    expect((await app.call('GET', `/v1/models/agent/${id}`)).status).toBe(404)
  })

  test('lists only models that clients can retrieve and use', async () => {
    const app = await startApp()
    await app.createAgent()
    for (const model of (await app.call('GET', '/v1/models')).body.data) {
      expect((await app.call('GET', `/v1/models/${model.id}`)).body).toEqual(model)
      expect((await app.call('GET', `/v1/models/${encodeURIComponent(model.id)}`)).body).toEqual(model)
      expect((await app.call('POST', '/v1/chat/completions', { body: say(model.id) })).status).toBe(200)
    }
  })
})

describe('a model id', () => {
  test('may start with the provider, in which case the response contains the same id', async () => {
    const app = await startApp()
    for (const path of ['/v1/models/mock/mock', '/v1/models/mock%2Fmock']) {
      expect((await app.call('GET', path)).body).toMatchObject({ id: 'mock/mock', provider: 'mock' })
    }
    expect((await app.call('POST', '/v1/chat/completions', { body: say('mock/mock') })).status).toBe(200)
  })

  const unknown = [
    'none',
    'mock/none',
    'none/mock',
    'MOCK',
    'mock/',
    'agent/',
    'agent/none',
    '__proto__',
    'constructor',
  ]
  test.each(unknown)('is rejected with 404 model_not_found if it is unknown: %s', async (id) => {
    const app = await startApp()
    const error = { code: 'model_not_found', type: 'invalid_request_error', param: 'model' }
    expect(await app.call('GET', `/v1/models/${id}`)).toMatchObject({ status: 404, body: { error } })
    expect(await app.call('POST', '/v1/chat/completions', { body: say(id) })).toMatchObject({
      status: 404,
      body: { error },
    })
  })

  test("is treated as unknown if it is another tenant's agent", async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent(undefined, await createTenant(app))
    const [foreign, never] = [
      `agent/${id}`,
      `agent/${id.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'))}`,
    ]
    const ask = async (model: string) =>
      (await app.call('GET', `/v1/models/${model}`)).text.replace(model, 'it')
    expect(await ask(foreign)).toBe(await ask(never))
    const chat = async (model: string) =>
      (await app.call('POST', '/v1/chat/completions', { body: say(model) })).text.replace(model, 'it')
    expect(await chat(foreign)).toBe(await chat(never))
  })
})

describe("a gateway's models", () => {
  async function startGateway(list?: readonly object[]): Promise<{ app: TestApp; upstream: Upstream }> {
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    if (list !== undefined) {
      await upstream.script('/v1/models', `{{up:body ${JSON.stringify({ object: 'list', data: list })}}}`)
    }
    const app = await startApp({ PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: upstream.url })
    return { app, upstream }
  }

  test('are listed with their context lengths and fetched only once', async () => {
    const { app, upstream } = await startGateway()
    for (let count = 0; count < 3; count++) await idsOf(app)
    const { body } = await app.call('GET', '/v1/models')
    expect(body.data[0]).toEqual({
      id: 'up-chat',
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'upstream',
      provider: 'gateway',
      context_length: 8192,
    })
    expect((await upstream.listRequests()).filter(({ path }) => path === '/v1/models')).toHaveLength(1)
  })

  test('may have ids that contain slashes and colons', async () => {
    const ids = ['meta-llama/Llama-3:free', 'a/b/c', 'gpt 4 %2F', 'agent/x', 'gateway/y']
    const { app, upstream } = await startGateway(ids.map((id) => ({ id, object: 'model' })))
    expect(await idsOf(app)).toEqual(ids)
    for (const id of ids) {
      const model = { id, object: 'model', created: 0, owned_by: 'gateway', provider: 'gateway' }
      expect((await app.call('GET', `/v1/models/${encodeURIComponent(id)}`)).body).toEqual(model)
      const prefixed = `gateway/${id}`
      expect((await app.call('GET', `/v1/models/${encodeURIComponent(prefixed)}`)).body.id).toBe(prefixed)
      await app.call('POST', '/v1/chat/completions', { body: say(prefixed) })
      expect((await upstream.listRequests()).at(-1)?.body).toMatchObject({ model: id })
    }
    for (const path of ['meta-llama/Llama-3:free', 'meta-llama/Llama-3%3Afree', 'a/b/c', 'a%2Fb/c']) {
      expect((await app.call('GET', `/v1/models/${path}`)).status).toBe(200)
    }
    expect((await app.call('GET', '/v1/models/a/b')).status).toBe(404)
  })

  test('are listed once even if the gateway lists them twice', async () => {
    const { app } = await startGateway([{ id: 'gpt' }, { id: 'other' }, { id: 'gpt' }])
    expect(await idsOf(app)).toEqual(['gpt', 'other'])
    expect((await app.call('GET', '/v1/models/gpt')).status).toBe(200)
    expect((await app.call('POST', '/v1/chat/completions', { body: say('gpt') })).status).toBe(200)
  })

  test('are the only models that requests can use', async () => {
    const { app, upstream } = await startGateway()
    expect((await app.call('POST', '/v1/chat/completions', { body: say('none') })).status).toBe(404)
    expect((await upstream.listRequests()).filter(({ path }) => path !== '/v1/models')).toEqual([])
  })
})

describe('a gateway without a readable model list', () => {
  /** Starts a server whose gateway answers chats and passes model-list requests to `answerList`. */
  async function startListlessGateway(answerList: RequestListener): Promise<TestApp> {
    const server = createServer((request, response) => {
      if (request.url === '/v1/models') return answerList(request, response)
      let body = ''
      request.setEncoding('utf8').on('data', (text) => {
        body += text
      })
      request.on('end', () => {
        const message = { role: 'assistant', content: 'hi' }
        const choices = [{ index: 0, message, finish_reason: 'stop' }]
        const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
        const completion = { id: 'c', object: 'chat.completion', created: 1, choices, usage }
        response.setHeader('Content-Type', 'application/json')
        response.end(JSON.stringify({ ...completion, model: JSON.parse(body).model }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close().closeAllConnections())
    const { port } = server.address() as AddressInfo
    return startApp({ PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: `http://127.0.0.1:${port}/v1` })
  }

  const faults: Readonly<Record<string, RequestListener>> = {
    'cannot be fetched': (_request, response) => response.writeHead(500).end(),
    'is not a list': (_request, response) => response.end('<html>'),
    'never arrives': () => {},
  }
  test.each(Object.entries(faults))(
    'accepts any model id and is reported as down if the list %s',
    async (_name, fault) => {
      const app = await startListlessGateway(fault)
      const answer = await app.call('GET', '/readyz')
      expect(answer).toMatchObject({
        status: 200,
        body: { status: 'degraded', checks: { backends: { gateway: 'down' } } },
      })
      expect(await idsOf(app)).toEqual([])
      for (const id of ['anything', 'gateway/anything']) {
        const { status, body } = await app.call('POST', '/v1/chat/completions', { body: say(id) })
        expect([status, body.model]).toEqual([200, 'anything'])
      }
    },
  )
})
