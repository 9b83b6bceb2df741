/** Tests uploads, budgets, conversions and host notifications that several replicas handle. */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { setBudget } from '../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../src/identity/audit.ts'
import type { CompletedUpload } from '../../src/server/service.ts'
import { startApp } from '../support/app.ts'
import { makeVideo } from '../support/conversion.ts'
import { countConversions, makeGate, waitUntil } from '../support/jobs.ts'
import { makeFolder } from '../support/process.ts'
import { createReplicaSettings, sharedStores, stallPatch, startReplicas } from '../support/replicas.ts'
import {
  createUpload,
  patchUpload,
  readArtifact,
  readOffset,
  readStatus,
  waitForState,
} from '../support/uploads.ts'
import { sendChat, totalUsage } from '../support/usage.ts'

// Databases and process starts are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000 })

/** Returns settings for replicas that share a new data directory. */
async function makeOnFolder(
  store: (typeof sharedStores)[number],
  more: Readonly<Record<string, string>> = {},
) {
  return {
    ...(await createReplicaSettings(store)),
    PARLEY_DATA_DIR: join(await makeFolder(), 'data'),
    ...more,
  }
}

describe.each(sharedStores)('replicas that share %s', (store) => {
  test("can continue each other's uploads", async () => {
    const [one, other] = await startReplicas(await makeOnFolder(store))
    const bytes = randomBytes(300_000)
    const begun = await createUpload(one, { size: bytes.length, metadata: { filename: 'data.bin' } })
    for (const [turn, from] of [0, 100_000, 200_000].entries()) {
      const app = turn % 2 === 0 ? other : one
      expect(await readOffset(app, begun)).toBe(from)
      expect((await patchUpload(app, begun, from, bytes.subarray(from, from + 100_000))).status).toBe(204)
    }
    await waitForState(one, begun.id, 'ready')
    for (const app of [one, other]) expect((await readArtifact(app, begun.id)).equals(bytes)).toBe(true)
  })

  test('never exceed a budget', async () => {
    const apps = await startReplicas(await createReplicaSettings(store))
    const [one, other] = apps
    const owner = { kind: 'parent', tenantId: one.key.slice(4, 16) } as const
    await setBudget(one.service.deps, serviceActor, owner, { day: 500 })
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, turn) =>
        sendChat(turn % 2 === 0 ? one : other, '[[tokens:60]] [[delay:1]]', { max_tokens: 100 }),
      ),
    )
    const passed = answers.filter(({ status }) => status === 200).length
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(40 - passed)
    expect(passed).toBeGreaterThan(0)
    await expect.poll(async () => (await totalUsage(one)).requests).toBe(passed)
    const total = await totalUsage(one)
    expect(total.total_tokens).toBeLessThanOrEqual(500)
    const counters = await other.service.deps.db
      .selectFrom('budget_counters')
      .select(['booked', 'reserved'])
      .execute()
    expect(counters).toEqual([{ booked: total.total_tokens, reserved: 0 }])
  })

  test('start each conversion only once', async () => {
    const gate = await makeGate()
    const env = await makeOnFolder(store, gate.env)
    const apps = await startReplicas(env)
    const bytes = await readFile(await makeVideo(join(gate.folder, 'clip.mkv'), ['-c:v', 'mpeg4', '-an']))
    const { id } = await createUpload(apps[0], { size: bytes.length, body: bytes })
    await waitUntil(async () => (await countConversions(gate)) === 1, 'ffmpeg runs')
    for (const { service } of apps) service.deps.artifacts.processing.wake()
    for (const app of apps) expect((await readStatus(app, id)).state).toBe('processing')
    expect(await countConversions(gate)).toBe(1)
    await gate.open()
    await waitForState(apps[1], id, 'ready')
    expect(await readStatus(apps[1], id)).toMatchObject({ conversion: { result: 'converted' } })
  })

  test('repeat a failed host notification with the same event id', async () => {
    const events: CompletedUpload[] = []
    const onUploadComplete = async (upload: CompletedUpload) => {
      events.push(upload)
      if (events.length < 3) throw new Error('not now')
    }
    const apps = await startReplicas(await makeOnFolder(store), { onUploadComplete })
    const { id } = await createUpload(apps[0], { size: 5, body: Buffer.from('hello') })
    await waitUntil(
      async () => (await readStatus(apps[1], id)).acknowledged === true,
      'the event is acknowledged',
    )
    expect(events).toHaveLength(3)
    expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(1)
  })

  test('take over jobs and uploads immediately when one of them stops', async () => {
    const gate = await makeGate()
    const env = await makeOnFolder(store, { ...gate.env, PARLEY_SHUTDOWN_SECONDS: '0.2' })
    const one = await startApp(env)
    const video = await readFile(await makeVideo(join(gate.folder, 'clip.mkv'), ['-c:v', 'mpeg4', '-an']))
    const { id } = await createUpload(one, { size: video.length, body: video })
    await waitUntil(async () => (await countConversions(gate)) === 1, 'ffmpeg runs')
    // Starts the other replica only now, because it could have taken the job first.
    const other = await startApp(env)
    const begun = await createUpload(one, { size: 1_000 })
    const writing = await stallPatch(one, begun, Buffer.from('hello'))
    await waitUntil(async () => {
      const row = await one.service.deps.db
        .selectFrom('artifacts')
        .select('lease_until')
        .where('id', '=', begun.id)
        .executeTakeFirst()
      return row?.lease_until != null
    }, 'the upload is being written')
    await one.service.close()
    await writing.receives(/^HTTP\/1\.1 503 .*"ok":false/s)
    // The poll times out before the lease would expire.
    await expect.poll(() => countConversions(gate)).toBe(2)
    await gate.open()
    await waitForState(other, id, 'ready')
    const offset = await readOffset(other, begun)
    const rest = Buffer.alloc(1_000 - offset, 'x')
    expect((await patchUpload(other, begun, offset, rest)).status).toBe(204)
  })
})
