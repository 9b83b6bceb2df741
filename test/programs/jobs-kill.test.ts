/** Tests that the next server completes uploads, conversions and notifications of a killed server. */
import { randomBytes } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { createArtifactSweeper } from '../../src/artifacts/maintenance.ts'
import { makeVideo, probe } from '../support/conversion.ts'
import { openSqliteFile } from '../support/database.ts'
import { getRow, listWorkFolders, makeGate, openArtifact, startJobs, waitUntil } from '../support/jobs.ts'
import { makeFolder, startServer } from '../support/process.ts'
import {
  createUpload,
  listArtifactBytes,
  patchUpload,
  readArtifact,
  readOffset,
  readStatus,
  type Target,
  waitForState,
} from '../support/uploads.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const hour = 3_600
const VTT = Buffer.from('WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n')

/** Returns the source of a host module that records events and blocks while the file `hold` exists. */
const hooks = (folder: string) => `
  import { appendFile } from 'node:fs/promises'
  import { existsSync } from 'node:fs'
  export async function onUploadComplete({ eventId, artifactId, sizeBytes }, { recordOutcome, open }) {
    const bytes = Buffer.concat(await (await open()).toArray())
    const same = bytes.length === sizeBytes
    await appendFile(${JSON.stringify(join(folder, 'events'))}, [eventId, artifactId, same].join(' ') + '\\n')
    await recordOutcome({ same })
    if (existsSync(${JSON.stringify(join(folder, 'hold'))})) await new Promise(() => {})
  }`

/** Creates a data directory and a host module, and functions that start servers with them. */
async function startWorld() {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  const path = join(folder, 'hooks.mjs')
  await writeFile(path, hooks(folder))
  let key: string | undefined
  const start = async (env: Readonly<Record<string, string>> = {}) => {
    const server = await startServer({
      folder,
      env: { PARLEY_DATA_DIR: dataDir, PARLEY_HOOKS: path, ...env },
    })
    key ??= server.key
    return { server, target: { url: server.url, key: key as string, fetch } }
  }
  return {
    folder,
    dataDir,
    start,
    hold: () => writeFile(join(folder, 'hold'), ''),
    release: () => rm(join(folder, 'hold')),
    listEvents: async () =>
      (await readFile(join(folder, 'events'), 'utf8').catch(() => '')).split('\n').slice(0, -1),
  }
}

const untilAcknowledged = (target: Target, id: string) =>
  waitUntil(async () => (await readStatus(target, id)).acknowledged === true, 'the event is acknowledged')

/** Starts a server with an upload whose conversion blocks until the test opens a gate. */
async function startConversion() {
  const world = await startWorld()
  const gate = await makeGate()
  const bytes = await readFile(await makeVideo(join(world.folder, 'clip.mkv'), ['-c:v', 'mpeg4', '-an']))
  const { server, target } = await world.start(gate.env)
  const { id } = await createUpload(target, { size: bytes.length, body: bytes })
  const isStarted = async () => (await readFile(join(gate.folder, 'started'), 'utf8').catch(() => '')) !== ''
  await waitUntil(isStarted, 'ffmpeg runs')
  return { ...world, gate, server, target, id, bytes }
}

async function expectConverted(world: { readonly folder: string }, target: Target, id: string) {
  await waitForState(target, id, 'ready')
  expect(await readStatus(target, id)).toMatchObject({ conversion: { result: 'converted' } })
  const copy = join(world.folder, 'served.mp4')
  await writeFile(copy, await readArtifact(target, id))
  const { streams, format } = await probe(copy)
  expect([streams[0].codec_name, Number(format.duration)]).toEqual(['h264', 2])
  expect((await openArtifact(target, `${id}/poster`)).status).toBe(200)
}

describe('a server that is killed during a conversion', () => {
  test('leaves a job that the next server completes', async () => {
    const world = await startConversion()
    await untilAcknowledged(world.target, world.id)
    await world.server.crash()
    expect(await listWorkFolders(world.dataDir)).toHaveLength(1)
    const { target } = await world.start()
    await expectConverted(world, target, world.id)
    expect(await listWorkFolders(world.dataDir)).toEqual([])
    await waitUntil(
      async () => (await listArtifactBytes(world.dataDir)).kept.length === 2,
      'the original is deleted',
    )
    expect(await world.listEvents()).toHaveLength(1)
  })

  test('after storing but before recording the result leaves a job that the next server repeats', async () => {
    const world = await startConversion()
    await untilAcknowledged(world.target, world.id)
    // Holds the write lock, so that the server can store the result but not record it.
    const database = openSqliteFile(world.dataDir)
    database.exec('begin immediate')
    await world.gate.open()
    await waitUntil(
      async () => (await listArtifactBytes(world.dataDir)).kept.length === 3,
      'all results are stored',
    )
    await world.server.crash()
    database.exec('rollback')
    const row = database.prepare('select state, served_blob from artifacts').get()
    expect(row).toEqual({ state: 'processing', served_blob: null })

    const { server, target } = await world.start()
    await expectConverted(world, target, world.id)
    const served = await readArtifact(target, world.id)
    await waitUntil(
      async () => (await listArtifactBytes(world.dataDir)).kept.length === 4,
      'the original is deleted',
    )
    await server.stop()
    // The sweeper deletes the first server's results after an hour, because no row refers to them.
    const { app, clock } = await startJobs({
      env: { PARLEY_DATA_DIR: world.dataDir, PARLEY_PARENT_KEY: target.key },
    })
    clock.advance(2 * hour)
    await createArtifactSweeper(app.service.deps).run()
    const { served_blob, poster_blob } = await getRow(app)
    const { kept } = await listArtifactBytes(world.dataDir)
    expect(kept.sort()).toEqual([served_blob, poster_blob].sort())
    expect((await readArtifact(app, world.id)).equals(served)).toBe(true)
  })
})

describe('a server that is killed while it notifies the host', () => {
  test('leaves an event that the next server delivers again with the same id', async () => {
    const world = await startWorld()
    await world.hold()
    const { server, target } = await world.start()
    const { id } = await createUpload(target, { size: VTT.length, body: VTT, metadata: { kind: 'captions' } })
    await waitUntil(async () => (await readStatus(target, id)).outcome !== undefined, 'the host is notified')
    await waitForState(target, id, 'ready')
    expect((await readStatus(target, id)).acknowledged).toBe(false)
    await server.crash()
    await world.release()
    const second = await world.start()
    await untilAcknowledged(second.target, id)
    const [first, again, ...more] = await world.listEvents()
    expect(first).toMatch(new RegExp(`^[0-9a-f-]{36} ${id} true$`))
    expect([again, more]).toEqual([first, []])
    expect(await readStatus(second.target, id)).toMatchObject({ state: 'ready', outcome: { same: true } })
    expect((await readArtifact(second.target, id)).equals(VTT)).toBe(true)
    // A third server must not deliver the acknowledged event again.
    await second.server.crash()
    const third = await world.start()
    expect((await readStatus(third.target, id)).acknowledged).toBe(true)
    await third.server.stop()
    expect(await world.listEvents()).toHaveLength(2)
  })
})

describe('a server that is killed while it completes an upload', () => {
  /** Leaves an upload whose file contains all bytes but whose row counts only the first five. */
  async function leaveUpload(bytes: Buffer) {
    const world = await startWorld()
    const { server, target } = await world.start()
    const begun = await createUpload(target, { size: bytes.length, body: bytes.subarray(0, 5) })
    await server.crash()
    const [name = ''] = (await listArtifactBytes(world.dataDir)).growing
    await writeFile(join(world.dataDir, 'artifacts', 'growing', name), bytes)
    // A growing file is named after its blob and the writer's number.
    return { world, begun, name: name.split('.')[0] }
  }

  test('before it records the last bytes leaves an upload that the client can resume', async () => {
    const bytes = randomBytes(100_000)
    const { world, begun, name } = await leaveUpload(bytes)
    const { target } = await world.start({ PARLEY_CONVERSION_TRIES: '1' })
    const offset = await readOffset(target, begun)
    expect(offset).toBe(5)
    expect((await readStatus(target, begun.id)).state).toBe('uploading')
    expect((await patchUpload(target, begun, offset, bytes.subarray(offset))).status).toBe(204)
    await waitForState(target, begun.id, 'ready')
    await untilAcknowledged(target, begun.id)
    expect((await readArtifact(target, begun.id)).equals(bytes)).toBe(true)
    expect(await world.listEvents()).toEqual([`${name} ${begun.id} true`])
  })

  test('after it records the last bytes leaves an upload that the next server completes', async () => {
    const { world, begun, name } = await leaveUpload(VTT)
    const database = openSqliteFile(world.dataDir)
    database.exec(`update artifacts set received_bytes = size_bytes, lease_until = 1e10, kind = 'captions'`)
    database.close()
    const { target } = await world.start()
    await waitForState(target, begun.id, 'ready')
    await untilAcknowledged(target, begun.id)
    expect((await readStatus(target, begun.id)).conversion).toEqual({ result: 'original' })
    expect((await readArtifact(target, begun.id)).equals(VTT)).toBe(true)
    expect(await world.listEvents()).toEqual([`${name} ${begun.id} true`])
  })
})
