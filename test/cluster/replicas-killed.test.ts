/** Tests that acknowledged data is not lost when one of two replicas is killed or paused. */
import { randomBytes } from 'node:crypto'
import { appendFile, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { startBalancer } from '../support/balancer.ts'
import { makeVideo } from '../support/conversion.ts'
import { countConversions, makeGate, waitUntil } from '../support/jobs.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { RawConnection, toRequest } from '../support/raw-connection.ts'
import { startLoad } from '../support/replica-load.ts'
import { createReplicaSettings, type SharedStore } from '../support/replicas.ts'
import { startS3rver } from '../support/s3rver.ts'
import {
  BODY_TYPE,
  createUpload,
  patchUpload,
  readArtifact,
  readStatus,
  type Target,
  uploadWhole,
} from '../support/uploads.ts'

// Starting processes is slow, and the tests wait for leases to expire.
vi.setConfig({ testTimeout: 300_000 })

/** Milliseconds after a kill until all requests must succeed again. */
const RECOVERY_MS = 2_000

/** Starts two replicas in separate processes with the same data directory. */
/** Creates an installation; `start` starts one of its servers. */
async function createInstallation(store: SharedStore, more: Readonly<Record<string, string>> = {}) {
  const folder = await makeFolder()
  const installation = await createReplicaSettings(store)
  const env = { ...installation, ...more, PARLEY_DATA_DIR: join(folder, 'data') }
  const off = {
    PARLEY_RATE_LIMIT_PARENT: '0',
    PARLEY_MAX_STREAMS_PARENT: '0',
    PARLEY_MAX_STREAMS_ADDRESS: '0',
  }
  const start = () => startServer({ folder, env: { ...env, ...off } })
  return { folder, key: installation.PARLEY_PARENT_KEY as string, start }
}

async function startProcesses(store: SharedStore, more: Readonly<Record<string, string>> = {}) {
  const { folder, key, start } = await createInstallation(store, more)
  const servers = [await start(), await start()] as const
  const targets = servers.map(({ url }): Target => ({ url, key, fetch }))
  return { folder, key, servers, targets: targets as [Target, Target] }
}

async function expectAllAgents({ url, key }: Target, ids: readonly string[]): Promise<void> {
  const { body } = await callServer(url, 'GET', '/v1/agents', key)
  const there = new Set(body.data.map(({ id }: { readonly id: string }) => id))
  expect(ids.filter((id) => !there.has(id))).toEqual([])
}

describe('a replica that is killed under load', () => {
  test.each([
    ['Redis', 'a folder'],
    ['PostgreSQL', 'a bucket'],
  ] as const)('does not lose any data (%s, %s)', async (store, place) => {
    const bucket = place === 'a bucket' ? await startS3rver() : {}
    const { servers, targets, key } = await startProcesses(store, bucket)
    const balancer = await startBalancer(servers.map(({ url }) => url))
    const target: Target = { url: balancer.url, key, fetch }
    const known = randomBytes(1_000)
    const { id } = await uploadWhole(target, known, { metadata: { filename: 'known.bin' } })
    const load = startLoad(target, { id, bytes: known })
    await waitUntil(async () => load.uploads.length >= 4 && load.agents.length >= 20, 'the load has started')
    const killedAtMs = performance.now()
    await servers[0].crash()
    await wait(3 * RECOVERY_MS)
    await load.stop()

    expect(load.outcomes.filter(({ result }) => result === 'wrong')).toEqual([])
    const recovered = load.outcomes.filter(({ beganAtMs }) => beganAtMs > killedAtMs + RECOVERY_MS)
    expect(recovered.filter(({ result }) => result !== 'ok')).toEqual([])
    const before = load.outcomes.filter(({ beganAtMs }) => beganAtMs < killedAtMs - RECOVERY_MS)
    expect(before.filter(({ result }) => result !== 'ok')).toEqual([])
    expect(new Set(recovered.map(({ kind }) => kind))).toEqual(new Set(load.outcomes.map(({ kind }) => kind)))
    await expectAllAgents(targets[1], load.agents)
    for (const upload of load.uploads) {
      // The other replica's next sweep completes uploads that the killed replica had fully received.
      const readState = async () => (await readStatus(targets[1], upload.id)).state
      await expect.poll(readState, { timeout: 120_000 }).toBe('ready')
      expect((await readArtifact(targets[1], upload.id)).equals(upload.bytes)).toBe(true)
    }
  })
})

test('a replica that was paused during an upload does not write to it after another replica takes over', async () => {
  const { folder, servers, targets } = await startProcesses('PostgreSQL')
  const bytes = randomBytes(300_000)
  const begun = await createUpload(targets[0], { size: bytes.length })
  const connection = await RawConnection.open(targets[0])
  const head = [
    'Host: x',
    `Authorization: Bearer ${targets[0].key}`,
    'Tus-Resumable: 1.0.0',
    'Upload-Offset: 0',
  ]
  const body = [`Content-Type: ${BODY_TYPE}`, `Content-Length: ${bytes.length}`]
  connection.send(toRequest(`PATCH ${begun.location}`, [...head, ...body]))
  connection.send(bytes.subarray(0, 1_000))
  const active = join(folder, 'data', 'artifacts', 'growing')
  const readSizes = async () => Promise.all((await readdir(active)).map((name) => stat(join(active, name))))
  const readSize = async () => (await readSizes().catch(() => []))[0]?.size
  await expect.poll(readSize, { timeout: 30_000 }).toBe(1_000)

  servers[0].kill('SIGSTOP')
  connection.send(Buffer.alloc(60_000, 'x'))
  const patch = (from: number, to: number) => patchUpload(targets[1], begun, from, bytes.subarray(from, to))
  await expect.poll(async () => (await patch(0, 200_000)).status, { timeout: 60_000 }).toBe(204)
  servers[0].kill('SIGCONT')
  await connection.receives(/"ok":false/)
  await expect.poll(async () => (await patch(200_000, 300_000)).status, { timeout: 60_000 }).toBe(204)
  await expect
    .poll(async () => (await readStatus(targets[1], begun.id)).state, { timeout: 60_000 })
    .toBe('ready')
  expect((await readArtifact(targets[1], begun.id)).equals(bytes)).toBe(true)
})

/** Returns the source of a host module that appends each event to a file. */
const hooks = (events: string) => `
  import { appendFile } from 'node:fs/promises'
  export const onUploadComplete = async ({ eventId, artifactId }) =>
    appendFile(${JSON.stringify(events)}, eventId + ' ' + artifactId + '\\n')`

test("another replica repeats a killed replica's conversion, and the host receives only one event id", async () => {
  const gate = await makeGate()
  const events = join(gate.folder, 'events')
  const module = join(gate.folder, 'hooks.mjs')
  await writeFile(module, hooks(events))
  await appendFile(events, '')
  const installation = { ...gate.env, PARLEY_HOOKS: module }
  const { folder, key, start } = await createInstallation('PostgreSQL', installation)
  const killed = await start()
  const bytes = await readFile(await makeVideo(join(folder, 'clip.mkv'), ['-c:v', 'mpeg4', '-an']))
  const upload = { size: bytes.length, body: bytes }
  const { id } = await createUpload({ url: killed.url, key, fetch }, upload)
  await waitUntil(async () => (await countConversions(gate)) === 1, 'ffmpeg runs')
  // Starts the other replica only now, because it could have taken the job first.
  const target: Target = { url: (await start()).url, key, fetch }
  await killed.crash()
  await expect.poll(() => countConversions(gate), { timeout: 120_000 }).toBe(2)
  await gate.open()
  await expect.poll(async () => (await readStatus(target, id)).state, { timeout: 120_000 }).toBe('ready')
  expect(await readStatus(target, id)).toMatchObject({ conversion: { result: 'converted' } })
  await waitUntil(async () => (await readStatus(target, id)).acknowledged === true, 'the host is notified')
  const heard = (await readFile(events, 'utf8')).trim().split('\n')
  expect(heard.length).toBeGreaterThan(0)
  expect(new Set(heard).size).toBe(1)
  expect(heard[0]?.split(' ')[1]).toBe(id)
})
