/** Tests an in-process model with concurrent requests, disconnecting clients and a shutdown. */
import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createLocalModelBackend, loadLocalModel } from '../../packages/in-process/src/index.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { neverAborted } from '../support/backend.ts'
import { writeConfigFile } from '../support/config-file.ts'
import { greedy, localEnvironment, startLocalModelHarness, writeModelFile } from '../support/local-model.ts'
import { totalUsage } from '../support/usage.ts'

// Models are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** A service with a model whose responses do not end. */
const harness = startLocalModelHarness({ brevity: -100 })
const CHAT = '/v1/chat/completions'

interface HeldStream {
  leave(): void
  /** Reads the stream to its end. */
  rest(): Promise<string>
}

/** Occupies one of the two slots with an endless response. */
async function hold(app: TestApp): Promise<HeldStream> {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const response = await fetch(app.url + CHAT, {
    method: 'POST',
    headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(greedy('Hi', { stream: true })),
    signal: leaving.signal,
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toContain('"role":"assistant"')
  return {
    leave: () => leaving.abort(),
    async rest() {
      let text = ''
      for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) {
        text += next.value
      }
      return text
    },
  }
}

/** Requests a short response; returns its HTTP status. */
async function ask(more: object = {}, signal: AbortSignal = neverAborted): Promise<number> {
  const body = greedy('Hi', { max_tokens: 3, ...more })
  return (await harness.app.call('POST', CHAT, { body, signal })).status
}

describe("the model's queue", () => {
  test('allows two running and six waiting calls and rejects the ninth with 429', async () => {
    await Promise.all([hold(harness.app), hold(harness.app)])
    const leaving = new AbortController()
    const seven = Array.from({ length: 7 }, () =>
      harness.app.call('POST', CHAT, { body: greedy('Hi'), signal: leaving.signal }),
    )
    const rejected = await Promise.race(seven)
    expect(rejected).toMatchObject({
      status: 429,
      body: { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } },
    })
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    leaving.abort()
    const ends = await Promise.allSettled(seven)
    expect(ends.filter(({ status }) => status === 'rejected')).toHaveLength(6)
  })

  test('starts the next call as soon as a client disconnects', async () => {
    const [first] = await Promise.all([hold(harness.app), hold(harness.app)])
    const waiting = ask()
    first.leave()
    expect(await waiting).toBe(200)
  })

  test('removes a waiting call whose client disconnects', async () => {
    const held = await Promise.all([hold(harness.app), hold(harness.app)])
    const leaving = new AbortController()
    const waiting = ask({}, leaving.signal)
    leaving.abort()
    await expect(waiting).rejects.toThrow()
    for (const stream of held) stream.leave()
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([200, 200, 200])
  })

  test('also applies to embeddings requests', async () => {
    const [first] = await Promise.all([hold(harness.app), hold(harness.app)])
    const waiting = harness.app.call('POST', '/v1/embeddings', { body: { input: 'Hi' } })
    first.leave()
    expect((await waiting).status).toBe(200)
  })
})

test('the fallback model responds when the queue is full', async () => {
  const text = `providers:\n  own: { kind: local, model: "${harness.path}", threads: 1 }\n  play: { kind: mock }\n`
  const app = await startApp({ PARLEY_CONFIG: await writeConfigFile(text) })
  const { agent_id, agent_key } = await app.createAgent()
  const policy = {
    default_model: { provider: 'own', model: 'tiny' },
    fallback_models: [{ provider: 'play', model: 'mock' }],
  }
  expect((await app.call('PUT', `/v1/agents/${agent_id}/model-policy`, { body: policy })).status).toBe(200)
  await Promise.all([hold(app), hold(app)])
  const leaving = new AbortController()
  const others = Array.from({ length: 7 }, () =>
    app.call('POST', CHAT, { body: greedy('Hi', { model: 'tiny' }), signal: leaving.signal }),
  )
  expect((await Promise.race(others)).status).toBe(429)
  const { status, headers } = await app.call('POST', CHAT, { key: agent_key, body: greedy('Hi') })
  expect({ status, by: headers.get('x-parley-provider') }).toEqual({ status: 200, by: 'play' })
  expect(headers.get('x-parley-fallback')).toBe('true')
  leaving.abort()
  await Promise.allSettled(others)
})

test('one service can run two models, but does not start if one of them cannot be loaded', async () => {
  const vectors = writeModelFile({ poolingType: 1 })
  const write = (path: string) =>
    writeConfigFile(`providers:
  talk: { kind: local, model: "${harness.path}", threads: 1 }
  embed: { kind: local, model: "${path}", threads: 1, context: 512 }
`)
  const app = await startApp({ PARLEY_CONFIG: await write(vectors) })
  const { data } = (await app.call('GET', '/v1/models')).body
  expect(data.map(({ id, context_length }: Record<string, unknown>) => [id, context_length])).toEqual([
    ['talk/tiny', 2048],
    ['embed/tiny', 512],
  ])
  const embedded = await app.call('POST', '/v1/embeddings', { body: { input: 'Hi' } })
  expect(embedded.headers.get('x-parley-provider')).toBe('embed')
  const chat = await app.call('POST', CHAT, { body: greedy('Hi', { max_tokens: 2 }) })
  expect(chat.headers.get('x-parley-provider')).toBe('talk')
  const missing = startApp({ PARLEY_CONFIG: await write('/nowhere.gguf') })
  await expect(missing).rejects.toThrow('The model file /nowhere.gguf (provider embed) does not exist.')
})

test('the generation stops when the client disconnects, and its usage is recorded', async () => {
  const app = await startApp(localEnvironment(harness.path))
  const { leave } = await hold(app)
  leave()
  await vi.waitUntil(async () => (await totalUsage(app)).requests === 1, { timeout: 10_000 })
  const usage = await totalUsage(app)
  expect(usage.completion_tokens).toBeGreaterThan(0)
  expect(usage.completion_tokens).toBeLessThan(1500)
})

test('prompt processing stops when the client disconnects', async () => {
  const path = writeModelFile({ contextLength: 8192 })
  const model = await loadLocalModel({
    kind: 'local-model',
    name: 'local',
    path,
    threads: 1,
    contextTokens: 8192,
  })
  const backend = createLocalModelBackend({ name: 'local', model, clock: systemClock, random: randomBytes })
  onTestFinished(() => backend.close())
  const sequences = model.chat?.places.map(({ sequence }) => sequence) ?? []
  const countRead = () => sequences.reduce((sum, { tokenMeter }) => sum + tokenMeter.usedInputTokens, 0)
  const long = (letter: string, signal = neverAborted) =>
    backend.complete({ body: greedy(letter.repeat(4000), { max_tokens: 1 }), signal })

  const leaving = new AbortController()
  const left = long('a', leaving.signal)
  await vi.waitUntil(() => countRead() > 0, { interval: 1, timeout: 10_000 })
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  // These calls complete only if the model no longer processes the cancelled prompt.
  const short = () => backend.complete({ body: greedy('Hi', { max_tokens: 1 }), signal: neverAborted })
  await Promise.all([short(), short()])
  expect(countRead()).toBeLessThan(3500)

  const before = countRead()
  await long('b')
  expect(countRead() - before).toBeGreaterThan(3990)
})

test('a stream ends with an error event when the service is closed', async () => {
  const app = await startApp(localEnvironment(harness.path))
  const stream = await hold(app)
  await app.service.close()
  const text = await stream.rest()
  expect(text).toMatch(/data: \{"error":\{.*\}\}\n\n$/)
  expect(text).not.toContain('[DONE]')
})
