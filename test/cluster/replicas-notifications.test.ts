/**
 * Tests that replicas notify each other of revoked keys, changed agents and artifacts, and stopped uploads.
 */

import { Redis } from 'ioredis'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { acquireLease, findUploadRow, updateReceived } from '../../src/artifacts/store.ts'
import { parseKey } from '../../src/lib/api-key.ts'
import { notify } from '../../src/replicas/postgres/store.ts'
import { asAdmin, root } from '../support/admin.ts'
import { createTenant } from '../support/agents.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { behindProxy } from '../support/console.ts'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { startRedis } from '../support/redis.ts'
import { createReplicaSettings, sharedStores, stallPatch, startReplicas } from '../support/replicas.ts'
import { S3Server } from '../support/s3-server.ts'
import {
  type CreatedUpload,
  callUpload,
  createUpload,
  headUpload,
  patchUpload,
  readArtifact,
  readOffset,
  waitForState,
} from '../support/uploads.ts'

// Databases and servers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const statusFor = async (app: TestApp, key: string) =>
  (await app.call('GET', '/v1/keys/validate', { key })).status

async function revoke(app: TestApp, key: string): Promise<void> {
  const { status, text } = await asAdmin(app, 'POST', `/keys/${parseKey(key)?.publicId}/revoke`)
  if (status !== 200) throw new Error(text)
}

async function rowOf({ service: { deps } }: TestApp, { id }: CreatedUpload) {
  const { blob } = await deps.db
    .selectFrom('artifacts')
    .select('blob')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return findUploadRow(deps.db, { blob: blob as string })
}

/** Waits until a request holds the lease on the upload. */
const untilLeased = (app: TestApp, begun: CreatedUpload) =>
  expect.poll(async () => (await rowOf(app, begun))?.lease_until ?? null).not.toBeNull()

describe.each(sharedStores)('replicas that share %s', (store) => {
  /** Starts replicas with a fixed clock, so that their caches do not expire. */
  async function startWithFixedClock() {
    const clock = createFakeClock()
    const env = { ...(await createReplicaSettings(store)), ...behindProxy, PARLEY_ADMIN_EMAILS: root }
    return { clock, apps: await startReplicas(env, { clock }) }
  }

  async function startOnBucket() {
    const s3 = await S3Server.start()
    return startReplicas({ ...(await createReplicaSettings(store)), ...s3.environment })
  }

  test('reject a cached key after another replica revokes it', async () => {
    const {
      apps: [one, other],
    } = await startWithFixedClock()
    const key = await createTenant(one)
    expect(await statusFor(other, key)).toBe(200)
    await revoke(one, key)
    await expect.poll(() => statusFor(other, key)).toBe(401)
  })

  test("apply another replica's change to an agent, and reject the agent's key after its deletion", async () => {
    const {
      apps: [one, other],
    } = await startWithFixedClock()
    const { agent_id: id, agent_key: key } = await one.createAgent()
    const readName = async () => (await other.call('GET', '/v1/agents/me', { key })).body.name
    expect(await readName()).toBe('Greeter')
    const headers = { 'Content-Type': 'application/yaml' }
    const body = 'name: Porter\ninstructions: Carry.\n'
    expect((await one.call('PUT', `/v1/agents/${id}`, { body, headers })).status).toBe(200)
    await expect.poll(readName).toBe('Porter')
    await one.call('DELETE', `/v1/agents/${id}`)
    await expect.poll(() => statusFor(other, key)).toBe(401)
  })

  test("receive each other's artifact changes, and their own changes exactly once", async () => {
    const {
      apps: [one, other],
    } = await startWithFixedClock()
    const heard: string[] = []
    const { id } = await createUpload(one)
    one.service.deps.artifacts.changes.subscribe(id, () => heard.push('here'))
    other.service.deps.artifacts.changes.subscribe(id, () => heard.push('there'))
    one.service.deps.artifacts.changes.publish(id)
    await expect.poll(() => heard.includes('there')).toBe(true)
    expect(heard.filter((where) => where === 'here')).toHaveLength(1)
  })

  test('resume an upload that has stalled on another replica', async () => {
    const [one, other] = await startOnBucket()
    const begun = await createUpload(one, { size: 1000 })
    const lost = await stallPatch(one, begun, Buffer.from('hello'))
    await untilLeased(one, begun)
    const offset = await readOffset(other, begun)
    const bytes = Buffer.alloc(1000, 'x')
    expect((await patchUpload(other, begun, offset, bytes.subarray(offset))).status).toBe(204)
    await lost.receives(/^HTTP\/1\.1 423 .*"ok":false/s)
    await waitForState(one, begun.id, 'ready')
    expect((await readArtifact(one, begun.id)).length).toBe(1000)
  })

  test('abort a write to an upload that another replica deletes', async () => {
    const [one, other] = await startOnBucket()
    const begun = await createUpload(one, { size: 1000 })
    const writing = await stallPatch(one, begun, Buffer.from('hello'))
    await untilLeased(one, begun)
    expect((await callUpload(other, 'DELETE', begun.location)).status).toBe(204)
    await writing.receives(/^HTTP\/1\.1 404 .*"ok":false/s)
    expect((await headUpload(one, begun)).status).toBe(404)
  })

  test('ignore unknown messages and process later ones', async () => {
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
    const s3 = await S3Server.start()
    const env = { ...(await createReplicaSettings(store)), ...s3.environment }
    const [one, other] = await startReplicas(env, { log })
    const begun = await createUpload(one, { size: 1000 })
    const writing = await stallPatch(one, begun, Buffer.from('hello'))
    await untilLeased(one, begun)
    const unknown = [
      ['stop-upload', `bogus ${begun.id}`],
      ['stop-upload', `toString ${begun.id}`],
      ['artifact', 'error'],
      ['upload-ended', 'error'],
      ['from-a-later-version', 'x'],
      ['__proto__', 'x'],
    ]
    for (const text of [JSON.stringify(['x', unknown]), '', 'null', '[1,2]', '["x",[["artifact"]]]'])
      await send(env, other, text)
    await expect.poll(() => lines.join('')).toContain('from-a-later-version')
    expect(lines.join('')).toContain('unknown reason for stopping an upload')
    expect((await callUpload(other, 'DELETE', begun.location)).status).toBe(204)
    await writing.receives(/^HTTP\/1\.1 404 .*"ok":false/s)
  })

  /** Publishes a raw message to all replicas. */
  async function send({ REDIS_URL: url }: { REDIS_URL?: string }, app: TestApp, text: string) {
    if (store === 'PostgreSQL') return void (await notify(app.service.deps.db, 'parley', text))
    const redis = new Redis(url as string)
    onTestFinished(() => redis.disconnect())
    await redis.publish('parley:0:bus', text)
  }

  test('take over an upload whose writer does not respond', async () => {
    const [one, other] = await startOnBucket()
    const begun = await createUpload(one, { size: 1000 })
    const { db } = one.service.deps
    const row = await rowOf(one, begun)
    const now = Math.floor(Date.now() / 1000)
    const lost = await acquireLease(db, row as NonNullable<typeof row>, now, now + 30)
    expect((await patchUpload(other, begun, 0, Buffer.from('hello'))).status).toBe(204)
    expect(await updateReceived(db, lost as NonNullable<typeof lost>, 0, { received_bytes: 9 })).toBe(false)
    expect(await readOffset(one, begun)).toBe(5)
  })

  test('convert an upload that another replica received', async () => {
    const [one, other] = await startOnBucket()
    await one.service.deps.artifacts.processing.close()
    const begun = await createUpload(one, { size: 5, body: Buffer.from('hello') })
    await waitForState(other, begun.id, 'ready')
  })
})

test('without Redis, another replica rejects a revoked key after two seconds, or as soon as Redis is back', async () => {
  const redis = await startRedis()
  const clock = createFakeClock()
  const env = { ...behindProxy, PARLEY_ADMIN_EMAILS: root, REDIS_URL: redis.url }
  const apps = await startReplicas({ ...(await createReplicaSettings('PostgreSQL')), ...env }, { clock })
  const [one, other] = apps
  const keys = [await createTenant(one), await createTenant(one)] as const
  await redis.kill()
  expect(await statusFor(other, keys[0])).toBe(200)
  await revoke(one, keys[0])
  expect(await statusFor(other, keys[0])).toBe(200)
  clock.advance(2)
  expect(await statusFor(other, keys[0])).toBe(401)
  expect(await statusFor(other, keys[1])).toBe(200)
  await revoke(one, keys[1])
  expect(await statusFor(other, keys[1])).toBe(200)
  await redis.start()
  await expect.poll(() => statusFor(other, keys[1])).toBe(401)
})

test("a replica that was disconnected from Redis invalidates other replicas' caches when it reconnects", async () => {
  const redis = await startRedis()
  const way = await CuttingProxy.open(redis.url)
  onTestFinished(() => way.close())
  const clock = createFakeClock()
  const env = { ...(await createReplicaSettings('PostgreSQL')), ...behindProxy, PARLEY_ADMIN_EMAILS: root }
  const one = await startApp({ ...env, REDIS_URL: way.url.replace('http', 'redis') }, { clock })
  const other = await startApp({ ...env, REDIS_URL: redis.url }, { clock })
  const key = await createTenant(one)
  expect(await statusFor(other, key)).toBe(200)
  const { promise: restored, resolve: restore } = Promise.withResolvers<string>()
  way.forwardTo(restored)
  way.cut('reset')
  await revoke(one, key)
  expect(await statusFor(other, key)).toBe(200)
  restore(redis.url)
  await expect.poll(() => statusFor(other, key)).toBe(401)
})
