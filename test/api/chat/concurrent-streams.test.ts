/** How many streams may be open at once, and that every way a stream ends makes room for the next. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import type { TestApp } from '../../support/app.ts'
import { say, startChatStand } from '../../support/chat-stand.ts'
import { createTypedClient } from '../../support/rpc.ts'

const stand = await startChatStand()
const path = '/v1/chat/completions'

interface HeldStream {
  readonly status: number
  /** Leaves, and waits until the backend has noticed. */
  leave(): Promise<void>
}

/** Opens a stream that stays open. */
async function hold(app: TestApp, name: string, key = app.key, headers = {}): Promise<HeldStream> {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const { status } = await fetch(app.url + path, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(say(`${name} {{up:hang-after 2}}`, { stream: true })),
    signal: leaving.signal,
  })
  return {
    status,
    async leave() {
      leaving.abort()
      const { id } = await stand.upstream.waitForRequest(name)
      await stand.upstream.waitForEnd(id)
    },
  }
}

/** The statuses of some more streams, one after another. */
async function statusOf(app: TestApp, text = 'hello', key = app.key): Promise<number> {
  return (await app.stream(say(text), key)).status
}

const ONE = { PARLEY_MAX_STREAMS_PARENT: '1' }

describe('a key with all its streams open', () => {
  test('is told to wait', async () => {
    const app = await stand.start(ONE)
    await hold(app, 'first')
    const answer = await app.call('POST', path, { body: say('second', { stream: true }) })
    expect(answer).toMatchObject({
      status: 429,
      body: { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null } },
    })
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await stand.listChats()).toHaveLength(1)
  })

  test('may ask for whole answers, and other keys for streams', async () => {
    const app = await stand.start(ONE)
    await hold(app, 'first')
    expect((await app.call('POST', path, { body: say('whole') })).status).toBe(200)
    expect(await statusOf(app, 'other', await createTenant(app))).toBe(200)
  })

  test('is told to wait at the typed door too', async () => {
    const app = await stand.start(ONE)
    await hold(app, 'first')
    const stream = createTypedClient(app).chat.stream.mutate(say('second') as never)
    const failure = stream.then(async (chunks) => {
      for await (const _ of chunks);
    })
    await expect(failure).rejects.toMatchObject({ data: { reason: 'rate_limit_exceeded' } })
  })
})

describe('a stream makes room', () => {
  test.each([
    ['with its end', 'hello'],
    ['with a failure before its first event', '{{up:status 400}}'],
    ['with a failure in its middle', '{{up:cut-off 2}}'],
    ['with a model that does not exist', 'hello', { model: 'gone' }],
  ])('%s', async (_how, text, more?: object) => {
    const app = await stand.start(ONE)
    await app.stream(say(text, more))
    expect(await statusOf(app)).toBe(200)
  })

  test('when its caller leaves', async () => {
    const app = await stand.start(ONE)
    await (await hold(app, 'first')).leave()
    expect(await statusOf(app)).toBe(200)
  })

  test('when its time is up', async () => {
    const app = await stand.start({ ...ONE, PARLEY_STREAM_MAX_SECONDS: '0.2' })
    await app.stream(say('{{up:hang-after 2}}'))
    expect(await statusOf(app)).toBe(200)
  })
})

describe('the streams of an agent key', () => {
  const proxied = { PARLEY_TRUSTED_PROXIES: '127.0.0.0/8' }
  const from = (address: string) => ({ 'X-Forwarded-For': address })

  test('are counted per agent', async () => {
    const app = await stand.start({ PARLEY_MAX_STREAMS_AGENT: '2', ...proxied })
    const [one, other] = [await app.createAgent(), await app.createAgent()]
    const statuses: number[] = []
    for (const [place, key] of [one, one, one, other].map(({ agent_key }) => agent_key).entries()) {
      statuses.push((await hold(app, `stream ${place}`, key, from(`10.0.0.${place}`))).status)
    }
    expect(statuses).toEqual([200, 200, 429, 200])
  })

  test('are counted per address, and one that is refused takes no place of the agent', async () => {
    const app = await stand.start({
      PARLEY_MAX_STREAMS_AGENT: '2',
      PARLEY_MAX_STREAMS_ADDRESS: '1',
      ...proxied,
    })
    const { agent_key } = await app.createAgent()
    const statuses: number[] = []
    for (const address of ['10.0.0.1', '10.0.0.1', '10.0.0.2', '10.0.0.3']) {
      statuses.push((await hold(app, `from ${address}`, agent_key, from(address))).status)
    }
    expect(statuses).toEqual([200, 429, 200, 429])
  })
})

test('0 is no limit', async () => {
  const app = await stand.start({ PARLEY_MAX_STREAMS_AGENT: '0', PARLEY_MAX_STREAMS_ADDRESS: '0' })
  const { agent_key } = await app.createAgent()
  const streams = Array.from({ length: 25 }, (_, place) => hold(app, `stream ${place}`, agent_key))
  expect(new Set((await Promise.all(streams)).map(({ status }) => status))).toEqual(new Set([200]))
})
