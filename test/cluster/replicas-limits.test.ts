/** Tests rate limits and stream limits that several replicas share. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { makeFolder, startServer } from '../support/process.ts'
import {
  callRoundRobin,
  countStatuses,
  createReplicaSettings,
  sharedStores,
  startReplicas,
} from '../support/replicas.ts'
import { createUpload } from '../support/uploads.ts'

// Databases and process starts are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const list = (app: TestApp) => app.call('GET', '/v1/models')

/** Opens an artifact's event stream; `leave` closes the connection. */
async function openStream({ url, key }: Pick<TestApp, 'url' | 'key'>, artifactId: string) {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const { status } = await fetch(`${url}/artifacts/${artifactId}/status`, {
    headers: { Authorization: `Bearer ${key}`, Accept: 'text/event-stream' },
    signal: leaving.signal,
  })
  return { status, leave: () => leaving.abort() }
}

describe.each(sharedStores)('replicas that share %s', (store) => {
  test('accept exactly as many requests as the limit allows', async () => {
    const env = { ...(await createReplicaSettings(store)), PARLEY_RATE_LIMIT_PARENT: '20' }
    const apps = await startReplicas(env)
    expect(await callRoundRobin(apps, 60, list)).toEqual({ 200: 20, 429: 40 })
    for (const app of apps) {
      const rejected = await list(app)
      const waitSeconds = Number(rejected.headers.get('retry-after'))
      expect(waitSeconds).toBeGreaterThan(0)
      expect(waitSeconds).toBeLessThanOrEqual(60)
      expect(rejected.headers.get('x-ratelimit-remaining')).toBe('0')
      expect(Number(rejected.headers.get('x-ratelimit-reset'))).toBeGreaterThan(0)
    }
  })

  test('charge each accepted request exactly once, even if 300 requests are concurrent', async () => {
    const apps = await startReplicas(await createReplicaSettings(store))
    const limiters = apps.map(({ service }) => service.deps.shared.limiter)
    const quota = { key: 'crowded', limit: 100 }
    const hits = await Promise.all(
      Array.from({ length: 300 }, (_, turn) =>
        limiters[turn % 2]?.hit([quota, { key: `own ${turn % 30}`, limit: 1000 }]),
      ),
    )
    const remaining = hits.filter((hit) => hit?.isLimited === false).map((hit) => hit?.remaining)
    expect(remaining.toSorted((one = 0, other = 0) => one - other)).toEqual(
      Array.from({ length: 100 }, (_, left) => left),
    )
  })

  test('reject a request whose cost exceeds the remaining limit without charging it', async () => {
    const apps = await startReplicas(await createReplicaSettings(store))
    const limiters = apps.map(({ service }) => service.deps.shared.limiter)
    const hits = await Promise.all(
      Array.from({ length: 60 }, (_, turn) => limiters[turn % 2]?.hit([{ key: 'large', limit: 100 }], 7)),
    )
    expect(hits.filter((hit) => hit?.isLimited === false)).toHaveLength(14)
    expect(await limiters[0]?.hit([{ key: 'large', limit: 100 }], 2)).toMatchObject({
      remaining: 0,
      isLimited: false,
    })
    expect(await limiters[1]?.hit([{ key: 'large', limit: 100 }])).toMatchObject({ isLimited: true })
  })

  test('do not charge a request to other limits if one limit rejects it', async () => {
    const env = {
      ...(await createReplicaSettings(store)),
      PARLEY_TRUSTED_PROXIES: '127.0.0.1/32',
      PARLEY_RATE_LIMIT_AGENT: '25',
      PARLEY_RATE_LIMIT_AGENT_ADDRESS: '10',
    }
    const apps = await startReplicas(env)
    const { agent_key: key } = await apps[0].createAgent()
    const ask = (address: string) =>
      callRoundRobin(apps, 30, (app) =>
        app.call('GET', '/v1/models', { key, headers: { 'X-Forwarded-For': address } }),
      )
    expect(await Promise.all([ask('192.0.2.1'), ask('192.0.2.2')])).toEqual([
      { 200: 10, 429: 20 },
      { 200: 10, 429: 20 },
    ])
    expect(await ask('192.0.2.3')).toEqual({ 200: 5, 429: 25 })
  })

  test('accept exactly as many streams as the limit allows, and accept more after some close', async () => {
    const env = { ...(await createReplicaSettings(store)), PARLEY_MAX_STREAMS_PARENT: '5' }
    const apps = await startReplicas(env)
    const { id } = await createUpload(apps[0])
    const streams = await Promise.all(
      Array.from({ length: 14 }, (_, turn) => openStream(apps[turn % 2] as TestApp, id)),
    )
    expect(countStatuses(streams)).toEqual({ 200: 5, 429: 9 })
    for (const { leave } of streams.filter(({ status }) => status === 200).slice(0, 2)) leave()
    const more: number[] = []
    await expect
      .poll(async () => {
        const { status } = await openStream(apps[more.length % 2] as TestApp, id)
        if (status === 200) more.push(status)
        return more.length
      })
      .toBe(2)
    const beyond = await Promise.all(apps.map((app) => openStream(app, id)))
    expect(countStatuses(beyond)).toEqual({ 429: 2 })
  })

  test('can reuse a stream slot immediately after another replica releases it', async () => {
    const apps = await startReplicas(await createReplicaSettings(store))
    const limiters = apps.map(({ service }) => service.deps.shared.streams)
    for (let turn = 0; turn < 50; turn++) {
      const release = await limiters[turn % 2]?.acquire([{ key: 'narrow', limit: 1 }])
      await release?.()
    }
  })

  test("reuse a killed replica's stream slots within 30 seconds", async () => {
    const env = { ...(await createReplicaSettings(store)), PARLEY_MAX_STREAMS_PARENT: '2' }
    const app = await startApp(env)
    const other = await startServer({ folder: await makeFolder(), env })
    const { id } = await createUpload(app)
    const held = [
      await openStream({ ...app, url: other.url }, id),
      await openStream({ ...app, url: other.url }, id),
    ]
    expect(countStatuses(held)).toEqual({ 200: 2 })
    expect((await openStream(app, id)).status).toBe(429)
    await other.crash()
    await expect.poll(async () => (await openStream(app, id)).status, { timeout: 30_000 }).toBe(200)
  })
})
