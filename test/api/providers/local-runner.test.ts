/** Tests the server with recorded responses of the local runners Ollama and llama-server. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { joinText } from '../../support/local-model.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { llamaServer, ollama } from '../../support/runner-answers.ts'
import { shareUpstream } from '../../support/start-upstream.ts'

const upstream = await shareUpstream()
beforeEach(() => upstream.clear())

const [MODELS, CHAT, EMBEDDINGS] = ['/v1/models', '/v1/chat/completions', '/v1/embeddings']

/** Makes the runner return this body, or a stream of these events, for a path. */
function answer(path: string, body: object | readonly object[], status = 200): Promise<void> {
  if (!Array.isArray(body))
    return upstream.script(path, `{{up:status ${status}}}{{up:body ${JSON.stringify(body)}}}`)
  const events = body.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  return upstream.script(path, `{{up:type text/event-stream}}{{up:body ${events}data: [DONE]\n\n}}`)
}

async function start(models: object, env: Record<string, string> = {}): Promise<TestApp> {
  await answer(MODELS, models)
  const settings = { PARLEY_BACKEND: 'local', PARLEY_LOCAL_URL: upstream.origin, ...env }
  return startApp(settings, { clock: createFakeClock() })
}

const say = (more: object = {}) => ({ messages: [{ role: 'user', content: 'Good evening!' }], ...more })

interface ErrorBody {
  readonly error: { readonly message: string }
}

async function lastChat() {
  return (await upstream.listRequests()).findLast(({ path }) => path === CHAT)
}

describe("a runner's models", () => {
  test('from Ollama are available with and without :latest, and the first chat model is the default', async () => {
    const app = await start(ollama.models)
    const { data } = (await app.call('GET', '/v1/models')).body
    expect(data.map(({ id, provider }: Record<string, string>) => `${provider} ${id}`)).toEqual([
      'local llama3.2:latest',
      'local qwen3:8b',
      'local bge-m3:latest',
    ])
    await answer(CHAT, ollama.completion)
    for (const model of ['llama3.2', 'llama3.2:latest', 'local/llama3.2', null]) {
      expect((await app.call('POST', CHAT, { body: say({ model }) })).status).toBe(200)
      expect((await lastChat())?.body).toMatchObject({ model: 'llama3.2:latest' })
    }
    expect((await app.call('GET', '/v1/models/llama3.2')).body).toMatchObject({
      id: 'llama3.2',
      created: 1_757_000_000,
    })
    expect((await app.call('POST', CHAT, { body: say({ model: 'qwen3' }) })).status).toBe(404)
    await answer(EMBEDDINGS, ollama.embeddings)
    expect((await app.call('POST', EMBEDDINGS, { body: { input: 'Hi' } })).body.data[0].embedding).toEqual([
      0.6, -0.8,
    ])
    const seen = (await upstream.listRequests()).findLast(({ path }) => path === EMBEDDINGS)
    expect(seen?.body).toMatchObject({ model: 'bge-m3:latest' })
  })

  test('from llama-server are named after their files, without the folder', async () => {
    const app = await start(llamaServer.models)
    expect((await app.call('GET', '/v1/models')).body.data).toMatchObject([
      { id: 'Llama-3.1-8B-Q4_K_M', context_length: 131_072 },
    ])
    const { data } = llamaServer.models
    const loading = { ...llamaServer.models, data: data.map((model) => ({ ...model, meta: null })) }
    const other = await start(loading)
    expect((await other.call('GET', '/v1/models')).body.data).toMatchObject([{ id: 'Llama-3.1-8B-Q4_K_M' }])
  })

  test('may be an empty list', async () => {
    const app = await start(ollama.noModels)
    expect((await app.call('GET', '/v1/models')).body.data).toEqual([])
    expect((await app.call('GET', '/readyz', { key: null })).body).toMatchObject({ status: 'ready' })
  })
})

describe("a runner's response", () => {
  test('is returned unchanged (Ollama)', async () => {
    const app = await start(ollama.models)
    await answer(CHAT, ollama.completion)
    const { body } = await app.call('POST', CHAT, { body: say() })
    expect(body).toEqual(ollama.completion)
  })

  test.each([
    ['Ollama', ollama.models, ollama.chunks, 'reasoning'],
    ['llama-server', llamaServer.models, llamaServer.chunks, 'reasoning_content'],
  ] as const)(
    'includes the role once, and usage only on request, if it is streamed (%s)',
    async (_who, models, chunks, thought) => {
      const app = await start(models)
      await answer(CHAT, chunks)
      const { events, isDone } = await app.stream(say({ stream_options: { include_usage: true } }))
      expect({ isDone, text: joinText(events) }).toEqual({ isDone: true, text: 'Good evening.' })
      const deltas = events.flatMap(({ choices }) => choices.map(({ delta }: { delta: object }) => delta))
      expect(deltas.filter((delta) => 'role' in delta)).toHaveLength(1)
      expect(deltas[0]).toHaveProperty('role')
      expect(deltas.map((delta) => Reflect.get(delta, thought) ?? '').join('')).toBe('A greeting.')
      expect(deltas.at(-1)).toEqual({})
      expect(events.filter(({ usage }) => usage)).toEqual([expect.objectContaining({ choices: [] })])
      const { events: without } = await app.stream(say())
      expect(without.filter(({ usage }) => usage)).toEqual([])
    },
  )

  test.each([
    ['Ollama', ollama.models, ollama.toolChunks],
    ['llama-server', llamaServer.models, llamaServer.toolChunks],
  ] as const)('can contain tool calls (%s)', async (_who, models, chunks) => {
    const app = await start(models)
    await answer(CHAT, chunks)
    const { events } = await app.stream(say())
    const deltas = events.flatMap(({ choices }) => choices[0].delta.tool_calls ?? [])
    expect(deltas[0]).toMatchObject({ index: 0, id: expect.any(String), function: { name: 'get_weather' } })
    expect(deltas.map((delta) => delta.function.arguments).join('')).toBe('{"city":"Paris"}')
    expect(events.at(-1).choices[0].finish_reason).toBe('tool_calls')
  })

  test.each([
    ['Ollama', ollama.models, ollama.brokenChunks],
    ['llama-server', llamaServer.models, llamaServer.brokenChunks],
  ] as const)('ends with an error if it is interrupted (%s)', async (_who, models, chunks) => {
    const app = await start(models)
    await answer(CHAT, chunks)
    const { events, isDone } = await app.stream(say())
    expect(isDone).toBe(false)
    expect(events.at(-1)).toMatchObject({ error: { type: 'upstream_error', code: 'stream_interrupted' } })
  })
})

test('requests to a runner contain no key and only fields that Ollama and llama-server support', async () => {
  const app = await start(ollama.models)
  await answer(CHAT, ollama.completion)
  const messages = [{ role: 'developer', content: 'Be brief.' }, ...say().messages]
  await app.call('POST', CHAT, { body: { messages, max_completion_tokens: 7 } })
  const seen = await lastChat()
  expect(seen?.body).toMatchObject({
    messages: [{ role: 'system', content: 'Be brief.' }, ...say().messages],
    max_tokens: 7,
    max_completion_tokens: 7,
  })
  expect(seen?.headers).not.toHaveProperty('authorization')
  await app.call('POST', CHAT, { body: { ...say(), max_tokens: 3, max_completion_tokens: 7 } })
  expect((await lastChat())?.body).toMatchObject({ max_tokens: 3 })
})

describe("a runner's error response", () => {
  test.each<[what: string, path: string, status: number, sent: ErrorBody, expected: object, times: number]>([
    ['for a missing model', CHAT, 404, ollama.gone, { status: 404, code: 'model_not_found' }, 1],
    [
      'for tools the model does not support',
      CHAT,
      400,
      ollama.noTools,
      { status: 400, code: 'invalid_value' },
      1,
    ],
    [
      'for an overlong prompt',
      CHAT,
      400,
      llamaServer.tooLong,
      { status: 400, code: 'context_length_exceeded' },
      1,
    ],
    [
      'for an overlong input',
      EMBEDDINGS,
      500,
      ollama.tooLong,
      { status: 400, code: 'context_length_exceeded' },
      1,
    ],
    [
      'for unsupported embeddings from Ollama',
      EMBEDDINGS,
      501,
      ollama.cannotEmbed,
      { status: 400, code: 'invalid_value' },
      1,
    ],
    [
      'for unsupported embeddings from llama-server',
      EMBEDDINGS,
      501,
      llamaServer.cannotEmbed,
      { status: 400, code: 'invalid_value' },
      1,
    ],
    [
      'while the model loads',
      CHAT,
      503,
      llamaServer.loading,
      { status: 503, code: 'backend_unavailable' },
      3,
    ],
    ['while the runner is busy', CHAT, 503, ollama.busy, { status: 503, code: 'backend_unavailable' }, 3],
  ])(
    'is returned with a specific error code and its message %s',
    async (_what, path, status, sent, expected, times) => {
      const app = await start(ollama.models)
      await answer(path, sent, status)
      const body = path === CHAT ? say() : { input: 'Hi' }
      const refused = await app.call('POST', path, { body })
      expect({ status: refused.status, code: refused.body.error.code }).toEqual(expected)
      expect(refused.body.error.message).toContain(sent.error.message)
      expect((await upstream.listRequests()).filter((seen) => seen.path === path)).toHaveLength(times)
    },
  )

  test('does not reveal that a key is missing', async () => {
    const app = await start(ollama.models)
    await answer(
      CHAT,
      { error: { message: 'Invalid API Key', type: 'authentication_error', code: 401 } },
      401,
    )
    const { status, text } = await app.call('POST', CHAT, { body: say() })
    expect(status).toBe(502)
    expect(text).not.toContain('API Key')
  })
})

describe('a runner that is not running', () => {
  async function freeAddress(): Promise<string> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    await new Promise((resolve) => server.close(resolve))
    return `http://127.0.0.1:${port}`
  }

  test('does not prevent startup; the server logs a warning and answers requests with 503', async () => {
    const url = await freeAddress()
    const { log, lines } = createLineLog()
    const settings = { PARLEY_BACKEND: 'local', PARLEY_LOCAL_URL: url }
    const app = await startApp(settings, { clock: createFakeClock(), log })
    const warning = lines.map((line) => JSON.parse(line)).find(({ level }) => level === 40)
    expect(warning.msg).toContain(
      `No model server is listening at ${url}; start Ollama (\`ollama serve\`) or llama-server`,
    )
    for (const stream of [false, true]) {
      const { status, body } = await app.call('POST', CHAT, { body: say({ model: 'llama3.2', stream }) })
      expect({ status, error: body.error }).toMatchObject({
        status: 503,
        error: {
          type: 'upstream_error',
          code: 'backend_unavailable',
          message: 'The local model server is not running.',
        },
      })
    }
    expect((await app.call('GET', '/readyz', { key: null })).body).toMatchObject({ status: 'degraded' })
  })
})

test("a runner's URL is accepted with or without /v1", async () => {
  await answer(CHAT, ollama.completion)
  for (const suffix of ['', '/', '/v1', '/v1/']) {
    const app = await start(ollama.models, { PARLEY_LOCAL_URL: upstream.origin + suffix })
    expect((await app.call('POST', CHAT, { body: say() })).status).toBe(200)
  }
})
