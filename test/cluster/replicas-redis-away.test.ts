/** Tests replicas that share Redis while it is unavailable, and servers that start without it. */
import { pino } from 'pino'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { callRoundRobin, createReplicaSettings, startReplicas } from '../support/replicas.ts'
import { createUpload } from '../support/uploads.ts'

// Databases and servers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const list = (app: TestApp) => app.call('GET', '/v1/models')

async function readReady(app: TestApp) {
  const { status, body } = await app.call('GET', '/readyz')
  return [status, body.status, body.checks.redis]
}

async function untilReady(apps: readonly TestApp[], state: 'up' | 'down'): Promise<void> {
  const wanted = state === 'up' ? [200, 'ready', 'up'] : [200, 'degraded', 'down']
  for (const app of apps) await expect.poll(() => readReady(app)).toEqual(wanted)
}

/** Starts two replicas that share a Redis server; each has counted the other. */
async function startPair(env: Readonly<Record<string, string>>) {
  const redis = await startRedis()
  const installation = { ...(await createReplicaSettings('PostgreSQL')), REDIS_URL: redis.url, ...env }
  const apps = await startReplicas(installation)
  await untilReady(apps, 'up')
  await settle(redis)
  return { redis, apps }
}

/** Waits for both replicas' next heartbeat, when they count the active replicas. */
async function settle({ client }: RedisServer): Promise<void> {
  const readSeen = () => client.zrange('parley:replicas', '0', '-1', 'WITHSCORES')
  const before = await readSeen()
  expect(before).toHaveLength(4)
  await expect.poll(async () => (await readSeen()).filter((word) => before.includes(word))).toHaveLength(2)
}

const ways: [string, (redis: RedisServer) => unknown, (redis: RedisServer) => unknown][] = [
  ['is down', (redis) => redis.kill(), (redis) => redis.start()],
  ['does not respond', (redis) => redis.signal('SIGSTOP'), (redis) => redis.signal('SIGCONT')],
]

describe.each(ways)('a Redis server that %s', (_what, takeAway, bringBack) => {
  test('makes each replica enforce its share of the limit until it is available again', async () => {
    const { redis, apps } = await startPair({ PARLEY_RATE_LIMIT_PARENT: '10' })
    await takeAway(redis)
    expect(await callRoundRobin([apps[0]], 15, list)).toEqual({ 200: 5, 429: 10 })
    expect(await callRoundRobin([apps[1]], 15, list)).toEqual({ 200: 5, 429: 10 })
    await untilReady(apps, 'down')
    await bringBack(redis)
    await untilReady(apps, 'up')
    await redis.client.flushall()
    await untilReady(apps, 'up')
    expect(await callRoundRobin(apps, 30, list)).toEqual({ 200: 10, 429: 20 })
  })

  test('does not interrupt open streams', async () => {
    const { redis, apps } = await startPair({ PARLEY_MAX_STREAMS_PARENT: '4' })
    const { id } = await createUpload(apps[0])
    const open = async (app: TestApp) => {
      const leaving = new AbortController()
      onTestFinished(() => leaving.abort())
      const { status } = await fetch(`${app.url}/artifacts/${id}/status`, {
        headers: { Authorization: `Bearer ${app.key}`, Accept: 'text/event-stream' },
        signal: leaving.signal,
      })
      return { status }
    }
    expect(await callRoundRobin([apps[0]], 2, open)).toEqual({ 200: 2 })
    await takeAway(redis)
    expect(await callRoundRobin([apps[0]], 2, open)).toEqual({ 429: 2 })
    expect(await callRoundRobin([apps[1]], 1, open)).toEqual({ 200: 1 })
    await untilReady(apps, 'down')
    await bringBack(redis)
    await untilReady(apps, 'up')
    expect(await callRoundRobin(apps, 6, open)).toEqual({ 200: 1, 429: 5 })
  })
})

test('a server can start while Redis is unavailable', async () => {
  const redis = await startRedis()
  await redis.kill()
  const app = await startApp({ REDIS_URL: redis.url, PARLEY_RATE_LIMIT_PARENT: '3' })
  expect(await readReady(app)).toEqual([200, 'degraded', 'down'])
  expect(await callRoundRobin([app], 5, list)).toEqual({ 200: 3, 429: 2 })
  await redis.start()
  await untilReady([app], 'up')
  expect(await callRoundRobin([app], 5, list)).toEqual({ 200: 3, 429: 2 })
})

test('a server with a wrong Redis password reports Redis as down and does not log the password', async () => {
  const lines: string[] = []
  const redis = await startRedis()
  const url = new URL(redis.url)
  await redis.client.config('SET', 'requirepass', 'the-right-password')
  url.password = 'the-wrong-password'
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const app = await startApp({ REDIS_URL: url.href }, { log })
  expect(await readReady(app)).toEqual([200, 'degraded', 'down'])
  expect(lines.join('')).toContain('WRONGPASS')
  expect(lines.join('')).not.toContain('the-wrong-password')
})
