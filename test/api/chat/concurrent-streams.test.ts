/** Tests the limits on concurrent streams, and that every stream releases its slot when it ends. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { updateManagedKey } from '../../../src/identity/managed-keys.ts'
import { createTenant } from '../../support/agents.ts'
import type { TestApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { createTypedClient } from '../../support/rpc.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'

interface OpenStream {
  readonly status: number
  /** Disconnects and waits until the backend's connection has closed too. */
  disconnect(): Promise<void>
}

async function openStream(app: TestApp, name: string, key = app.key, headers = {}): Promise<OpenStream> {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  const { status } = await fetch(app.url + path, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(chatRequest(`${name} {{up:hang-after 2}}`, { stream: true })),
    signal: controller.signal,
  })
  return {
    status,
    async disconnect() {
      controller.abort()
      const { id } = await harness.upstream.waitForRequest(name)
      await harness.upstream.waitForEnd(id)
    },
  }
}

async function statusOf(app: TestApp, text = 'hello', key = app.key): Promise<number> {
  return (await app.stream(chatRequest(text), key)).status
}

const ONE = { PARLEY_MAX_STREAMS_PARENT: '1' }

describe('a key at its stream limit', () => {
  test('receives 429 with Retry-After', async () => {
    const app = await harness.start(ONE)
    await openStream(app, 'first')
    const answer = await app.call('POST', path, { body: chatRequest('second', { stream: true }) })
    expect(answer).toMatchObject({
      status: 429,
      body: { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null } },
    })
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('receives 429 at its own limit if that is lower than the configured limit', async () => {
    const app = await harness.start()
    const id = app.key.slice(4, 16)
    await updateManagedKey(app.service.deps, serviceActor, { kind: 'command' }, id, { max_streams: 1 })
    await openStream(app, 'first')
    expect(await statusOf(app)).toBe(429)
    expect(await statusOf(app, 'other', await createTenant(app))).toBe(200)
  })

  test('can still request complete responses, and other keys can still stream', async () => {
    const app = await harness.start(ONE)
    await openStream(app, 'first')
    expect((await app.call('POST', path, { body: chatRequest('whole') })).status).toBe(200)
    expect(await statusOf(app, 'other', await createTenant(app))).toBe(200)
  })

  test('is also rejected over tRPC', async () => {
    const app = await harness.start(ONE)
    await openStream(app, 'first')
    const stream = createTypedClient(app).chat.stream.mutate(chatRequest('second') as never)
    const failure = stream.then(async (chunks) => {
      for await (const _ of chunks);
    })
    await expect(failure).rejects.toMatchObject({ data: { reason: 'rate_limit_exceeded' } })
  })
})

describe('a stream releases its slot', () => {
  test.each([
    ['when it ends', 'hello'],
    ['when it fails before its first event', '{{up:status 400}}'],
    ['when it fails midway', '{{up:cut-off 2}}'],
    ['when its model does not exist', 'hello', { model: 'gone' }],
  ])('%s', async (_how, text, more?: object) => {
    const app = await harness.start(ONE)
    await app.stream(chatRequest(text, more))
    expect(await statusOf(app)).toBe(200)
  })

  test('when the client disconnects', async () => {
    const app = await harness.start(ONE)
    await (await openStream(app, 'first')).disconnect()
    // The next request may arrive before the server has noticed the disconnect.
    await expect.poll(() => statusOf(app)).toBe(200)
  })

  test('when it reaches the maximum duration', async () => {
    const app = await harness.start({ ...ONE, PARLEY_STREAM_MAX_SECONDS: '0.2' })
    await app.stream(chatRequest('{{up:hang-after 2}}'))
    expect(await statusOf(app)).toBe(200)
  })
})

describe('the stream limit of an agent key', () => {
  const proxied = { PARLEY_TRUSTED_PROXIES: '127.0.0.0/8' }
  const from = (address: string) => ({ 'X-Forwarded-For': address })

  test('applies to each agent separately', async () => {
    const app = await harness.start({ PARLEY_MAX_STREAMS_AGENT: '2', ...proxied })
    const [one, other] = [await app.createAgent(), await app.createAgent()]
    const statuses: number[] = []
    for (const [place, key] of [one, one, one, other].map(({ agent_key }) => agent_key).entries()) {
      statuses.push((await openStream(app, `stream ${place}`, key, from(`10.0.0.${place}`))).status)
    }
    expect(statuses).toEqual([200, 200, 429, 200])
  })

  test("is separate from the limit per address, and a stream rejected by that limit does not use one of the agent's slots", async () => {
    const app = await harness.start({
      PARLEY_MAX_STREAMS_AGENT: '2',
      PARLEY_MAX_STREAMS_ADDRESS: '1',
      ...proxied,
    })
    const { agent_key } = await app.createAgent()
    const statuses: number[] = []
    for (const address of ['10.0.0.1', '10.0.0.1', '10.0.0.2', '10.0.0.3']) {
      statuses.push((await openStream(app, `from ${address}`, agent_key, from(address))).status)
    }
    expect(statuses).toEqual([200, 429, 200, 429])
  })
})

test('a stream limit of 0 means no limit', async () => {
  const app = await harness.start({ PARLEY_MAX_STREAMS_AGENT: '0', PARLEY_MAX_STREAMS_ADDRESS: '0' })
  const { agent_key } = await app.createAgent()
  const streams = Array.from({ length: 25 }, (_, place) => openStream(app, `stream ${place}`, agent_key))
  expect(new Set((await Promise.all(streams)).map(({ status }) => status))).toEqual(new Set([200]))
})
