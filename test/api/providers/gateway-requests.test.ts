/** Tests the gateway backend's requests for completions and model lists, and how it reads the responses. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createGatewayBackend, type GatewayOptions } from '../../../src/providers/gateway.ts'
import { failureOf, neverAborted } from '../../support/backend.ts'
import { apiKey, chatCall, longTimeouts, startGatewayHarness } from '../../support/gateway.ts'

const { upstream, gateway, readDirectly } = await startGatewayHarness()

describe('a completion', () => {
  test('is returned byte for byte', async () => {
    const request = chatCall('héllo {{up:cut 7}}')
    expect(Buffer.from(await gateway().complete(request))).toEqual(await readDirectly(request.body))
  })

  test('is requested with the unchanged body, fixed headers and the key', async () => {
    const request = chatCall('headers', neverAborted, { temperature: 0.5, nested: { kept: [1, null, 'é'] } })
    await gateway().complete(request)
    const [seen] = await upstream.listRequests()
    expect(seen).toMatchObject({ method: 'POST', path: '/v1/chat/completions', body: request.body })
    expect(seen?.headers).toEqual({
      host: upstream.origin.slice('http://'.length),
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(JSON.stringify(request.body))),
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'parley',
      authorization: `Bearer ${apiKey}`,
    })
  })

  test('is requested without an Authorization header if the key is missing or empty', async () => {
    const backend = createGatewayBackend({ name: 'gateway', url: upstream.url, timings: longTimeouts })
    onTestFinished(() => backend.close())
    await backend.complete(chatCall('anonymous'))
    const failure = await failureOf(
      gateway({ apiKey: '' }).complete(chatCall('{{up:status 400}}{{up:message no}}')),
    )
    expect(failure.said?.message).toBe('no')
    for (const { headers } of await upstream.listRequests())
      expect(headers).not.toHaveProperty('authorization')
  })

  test('is requested at the chat completions path with the query of the base URL, even if that URL has a trailing slash', async () => {
    await gateway({ url: `${upstream.url}/?api-version=1` }).complete(chatCall('path'))
    expect((await upstream.listRequests())[0]?.path).toBe('/v1/chat/completions?api-version=1')
  })

  test('reuses the connection of the previous completion', async () => {
    const backend = gateway()
    await backend.complete(chatCall('first'))
    // undici releases the connection only after another turn of the event loop.
    await upstream.listRequests()
    await backend.complete(chatCall('second'))
    const [first, second] = await upstream.listRequests()
    expect(second?.connection).toBe(first?.connection)
  })

  test('fails with a protocol error if it exceeds the size limit', async () => {
    const text = `{{up:text ${'x'.repeat(5_000)}}}`
    const failure = await failureOf(gateway({ maxAnswerBytes: 4_000 }).complete(chatCall(text)))
    expect(failure.kind).toBe('protocol')
    expect((await gateway({ maxAnswerBytes: 6_000 }).complete(chatCall(text))).length).toBeGreaterThan(5_000)
  })
})

describe('the model list', () => {
  test('is requested from Anthropic with its own headers and page size', async () => {
    const { port } = new URL(upstream.origin)
    const toUpstream = ((_name, { all }, callback) =>
      all
        ? callback(null, [{ address: '127.0.0.1', family: 4 }])
        : callback(null, '127.0.0.1', 4)) as NonNullable<GatewayOptions['lookup']>
    const backend = gateway({ url: `http://api.anthropic.com:${port}/v1`, lookup: toUpstream })
    await backend.listModels(neverAborted)
    await backend.complete(chatCall('hello'))
    const [list, completion] = await upstream.listRequests()
    expect(list).toMatchObject({
      path: '/v1/models?limit=1000',
      headers: { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' },
    })
    expect(list?.headers).not.toHaveProperty('authorization')
    expect(completion?.headers).toMatchObject({ authorization: `Bearer ${apiKey}` })
    expect(completion?.headers).not.toHaveProperty('x-api-key')
  })

  const list = (...data: unknown[]) => JSON.stringify({ object: 'list', data })

  test('is requested at /v1/models with the API key', async () => {
    const models = await gateway().listModels(neverAborted)
    expect(models).toEqual([
      { id: 'up-chat', created: 1_700_000_000, ownedBy: 'upstream', contextLength: 8192, chats: true },
      { id: 'up-small', created: 1_700_000_001, ownedBy: 'upstream', contextLength: 2048, chats: true },
      { id: 'up-embedding', created: 1_700_000_002, ownedBy: 'upstream', chats: false },
    ])
    const [seen] = await upstream.listRequests()
    expect(seen).toMatchObject({ method: 'GET', path: '/v1/models', body: null })
    expect(seen?.headers).toMatchObject({ authorization: `Bearer ${apiKey}` })
    expect(seen?.headers).not.toHaveProperty('content-type')
  })

  test.each([
    [{ id: 'm', context_length: 4096 }, { contextLength: 4096 }],
    [{ id: 'm', max_model_len: 4096 }, { contextLength: 4096 }],
    [{ id: 'm', context_window: 4096 }, { contextLength: 4096 }],
    [{ id: 'm', meta: { n_ctx_train: 4096 } }, { contextLength: 4096 }],
    [
      { id: 'm', context_length: null, max_model_len: '9', context_window: 0, meta: { n_ctx_train: 4096 } },
      { contextLength: 4096 },
    ],
    [{ id: 'm', meta: null }, {}],
    [{ id: 'm', created: 'yesterday', owned_by: 7 }, {}],
  ])('may contain the entry %j', async (listed, found) => {
    await upstream.script('/v1/models', `{{up:body ${list(listed)}}}`)
    expect(await gateway().listModels(neverAborted)).toEqual([
      { id: 'm', created: 0, ownedBy: 'gateway', chats: true, ...found },
    ])
  })

  test.each(['text-embedding-3-small', 'nomic-EMBED-text', 'org/Embedding'])(
    'marks %s as an embedding model',
    async (id) => {
      await upstream.script('/v1/models', `{{up:body ${list({ id })}}}`)
      expect(await gateway().listModels(neverAborted)).toMatchObject([{ id, chats: false }])
    },
  )

  test('omits invalid entries', async () => {
    await upstream.script(
      '/v1/models',
      `{{up:body ${list(null, 'm', 7, [], {}, { id: 7 }, { id: '' }, { id: 'm' })}}}`,
    )
    expect((await gateway().listModels(neverAborted)).map((model) => model.id)).toEqual(['m'])
  })

  test.each([
    ['{{up:body not JSON}}', { kind: 'protocol' }],
    ['{{up:body {"data":{}}}}', { kind: 'protocol' }],
    ['{{up:body null}}', { kind: 'protocol' }],
    ['{{up:status 401}}', { kind: 'status', status: 401 }],
    ['{{up:hang}}', { kind: 'timeout' }],
    ['{{up:drip}}{{up:delay 40}}', { kind: 'timeout' }],
  ])('cannot be read after %s', async (directive, failure) => {
    await upstream.script('/v1/models', directive)
    const backend = gateway({ timings: { modelListMs: 400 } })
    expect(await failureOf(backend.listModels(neverAborted))).toMatchObject(failure)
  })

  test('is no longer requested after the caller aborts', async () => {
    await upstream.script('/v1/models', '{{up:hang}}')
    const abort = new AbortController()
    const listing = gateway().listModels(abort.signal)
    const { id } = await upstream.waitForPath('/v1/models')
    const reason = new Error('the caller left')
    abort.abort(reason)
    await expect(listing).rejects.toBe(reason)
    expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
  })
})
