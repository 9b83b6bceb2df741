/** Tests a server with two providers in its `PARLEY_CONFIG` file. */
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { chatRequest } from '../../support/chat-harness.ts'
import { writeConfigFile } from '../../support/config-file.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { startUpstream, type Upstream } from '../../support/start-upstream.ts'

const [near, far] = [await startUpstream(), await startUpstream()]
beforeEach(() => Promise.all([near.clear(), far.clear()]))
afterAll(() => Promise.all([near.stop(), far.stop()]))

const CHAT = '/v1/chat/completions'

/** Makes an upstream return this model list from now on. */
function listModels(upstream: Upstream, ...ids: readonly string[]): Promise<void> {
  const data = ids.map((id) => ({ id, object: 'model', created: 1, owned_by: 'example' }))
  return upstream.script('/v1/models', `{{up:body ${JSON.stringify({ object: 'list', data })}}}`)
}

async function start(env: Record<string, string> = {}): Promise<TestApp> {
  const text = `providers:
  near: { url: ${near.url} }
  far: { url: ${far.url}, api_key: "\${FAR_KEY}" }
`
  const settings = { PARLEY_CONFIG: await writeConfigFile(text), FAR_KEY: 'far-provider-key', ...env }
  return startApp(settings, { clock: createFakeClock() })
}

async function idsOf(app: TestApp): Promise<string[]> {
  return (await app.call('GET', '/v1/models')).body.data.map(({ id }: { id: string }) => id)
}

/** Returns the provider that answered and the model it was asked for, or the error code. */
async function chat(app: TestApp, model: string | null): Promise<string> {
  await Promise.all([near.clear(), far.clear()])
  const { headers, body } = await app.call('POST', CHAT, { body: chatRequest('hello', { model }) })
  const [nearAsked, farAsked] = [await listAsked(near, CHAT), await listAsked(far, CHAT)]
  const asked = [...nearAsked.map((id) => `near: ${id}`), ...farAsked.map((id) => `far: ${id}`)]
  if (asked.length === 0) return body.error.code
  expect(asked).toEqual([`${headers.get('x-parley-provider')}: ${body.model}`])
  return asked.join()
}

/** Returns the model in each request to an upstream's path. */
async function listAsked(upstream: Upstream, path: string): Promise<unknown[]> {
  const requests = (await upstream.listRequests()).filter((seen) => seen.path === path)
  return requests.map(({ body }) => (body as { model: unknown }).model)
}

test("a request is sent to the model's provider whichever of the model's ids it contains", async () => {
  await listModels(near, 'shared', 'small', 'far/away')
  await listModels(far, 'shared', 'large', 'near/by:1')
  const app = await start()
  expect(await idsOf(app)).toEqual(['near/shared', 'small', 'far/away', 'far/shared', 'large', 'near/by:1'])
  const answers = {
    'near/shared': 'near: shared',
    'far/shared': 'far: shared',
    small: 'near: small',
    'near/small': 'near: small',
    large: 'far: large',
    'far/large': 'far: large',
    'far/away': 'near: far/away',
    'near/far/away': 'near: far/away',
    'near/by:1': 'far: near/by:1',
    'far/near/by:1': 'far: near/by:1',
    shared: 'model_not_found',
    'near/large': 'model_not_found',
    'other/small': 'model_not_found',
  }
  for (const [id, answer] of Object.entries(answers)) expect([id, await chat(app, id)]).toEqual([id, answer])
})

test('every listed model is available by its id with or without the provider prefix', async () => {
  await listModels(near, 'shared', 'small', 'far/large')
  await listModels(far, 'shared', 'large')
  const app = await start()
  const { data } = (await app.call('GET', '/v1/models')).body
  expect(data.map(({ id, provider }: Record<string, string>) => `${provider} ${id}`)).toEqual([
    'near near/shared',
    'near small',
    'near near/far/large',
    'far far/shared',
    'far large',
  ])
  for (const model of data) {
    expect((await app.call('GET', `/v1/models/${model.id}`)).body).toEqual(model)
    const own = model.id.replace(new RegExp(`^${model.provider}/`), '')
    const id = `${model.provider}/${own}`
    expect((await app.call('GET', `/v1/models/${encodeURIComponent(id)}`)).body).toEqual({ ...model, id })
  }
  expect((await app.call('GET', '/v1/models/shared')).status).toBe(404)
})

test('each provider receives only its own API key', async () => {
  const app = await start()
  expect(await chat(app, 'near/up-chat')).toBe('near: up-chat')
  const [toNear] = (await near.listRequests()).filter(({ path }) => path === CHAT)
  expect(await chat(app, 'far/up-chat')).toBe('far: up-chat')
  const [toFar] = (await far.listRequests()).filter(({ path }) => path === CHAT)
  expect(toNear?.headers.authorization).toBeUndefined()
  expect(toFar?.headers.authorization).toBe('Bearer far-provider-key')
})

describe('the default model', () => {
  test.each<[string, string | undefined, string]>([
    ["the first provider's first model", undefined, 'near: up-chat'],
    ['the model that the operator set, with its provider prefix', 'far/up-small', 'far: up-small'],
    ['unknown if the provider does not list it', 'far/unlisted', 'model_not_found'],
  ])('is %s', async (_which, model, answer) => {
    const app = await start(model === undefined ? {} : { PARLEY_DEFAULT_MODEL: model })
    expect(await chat(app, null)).toBe(answer)
  })

  test('for embeddings can be set separately, with a provider prefix', async () => {
    const app = await start({ PARLEY_DEFAULT_EMBEDDING_MODEL: 'far/up-embedding' })
    const { headers } = await app.call('POST', '/v1/embeddings', { body: { input: 'a' } })
    expect(headers.get('x-parley-provider')).toBe('far')
    expect(await listAsked(far, '/v1/embeddings')).toEqual(['up-embedding'])
  })

  test('can be set by an agent, with a provider prefix', async () => {
    const app = await start()
    const { agent_key: key } = await app.createAgent('name: A\ninstructions: B\nmodel: far/up-small\n')
    const { headers, body } = await app.call('POST', CHAT, {
      key,
      body: chatRequest('hello', { model: null }),
    })
    expect([headers.get('x-parley-provider'), body.model]).toEqual(['far', 'up-small'])
  })
})

test('an embeddings request is sent to the provider that its model id names', async () => {
  const app = await start()
  for (const [name, upstream] of Object.entries({ near, far })) {
    const body = { model: `${name}/up-embedding`, input: ['a', 'b'] }
    const answer = await app.call('POST', '/v1/embeddings', { body })
    expect(answer).toMatchObject({ status: 200, body: { model: 'up-embedding', data: [{}, {}] } })
    expect(answer.headers.get('x-parley-provider')).toBe(name)
    expect(await listAsked(upstream, '/v1/embeddings')).toEqual(['up-embedding'])
  }
})

describe('while one provider is unavailable', () => {
  test('the other provider answers, and /readyz reports degraded', async () => {
    await near.script('/v1/models', '{{up:status 500}}')
    await listModels(far, 'shared', 'near/by')
    const app = await start()
    expect(await app.call('GET', '/readyz')).toMatchObject({
      status: 200,
      body: { status: 'degraded', checks: { backends: { near: 'down', far: 'up' } } },
    })
    expect(await idsOf(app)).toEqual(['shared', 'far/near/by'])
    const answers = {
      shared: 'far: shared',
      'far/shared': 'far: shared',
      'near/shared': 'near: shared',
      'near/by': 'near: by',
      'far/near/by': 'far: near/by',
      unheard: 'near: unheard',
      'un/heard': 'near: un/heard',
      'far/unheard': 'model_not_found',
    }
    for (const [id, answer] of Object.entries(answers))
      expect([id, await chat(app, id)]).toEqual([id, answer])
    expect(await chat(app, null)).toBe('far: shared')
  })

  test('a request to that provider fails without affecting the other one', async () => {
    const app = await start()
    await far.script(CHAT, '{{up:status 500}}')
    const answer = await app.call('POST', CHAT, { body: chatRequest('hello', { model: 'far/up-chat' }) })
    expect(answer).toMatchObject({ status: 502, body: { error: { code: 'backend_error' } } })
    expect(await listAsked(near, CHAT)).toEqual([])
  })
})

test('the server is ready if every provider lists its models', async () => {
  const { body } = await (await start()).call('GET', '/readyz')
  expect(body).toMatchObject({ status: 'ready', checks: { backends: { near: 'up', far: 'up' } } })
})
