/** Tests that a backup of a busy server is complete, and that a killed backup or restore can be run again. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { GREETER } from '../support/app.ts'
import { openSqliteFile } from '../support/database.ts'
import { download, filePart, purpose, upload } from '../support/files.ts'
import {
  callServer,
  makeFolder,
  type RunningServer,
  runParley,
  startParley,
  startServer,
} from '../support/process.ts'
import {
  type CreatedUpload,
  callUpload,
  createUpload,
  patchUpload,
  readArtifact,
  readOffset,
  type Target,
  waitForState,
} from '../support/uploads.ts'

vi.setConfig({ testTimeout: 120_000 })

const MIB = 1024 ** 2
/** An upper bound for the size of an upload that grows until the backup is complete. */
const GROWN_BYTES = 16 * MIB
const env = { PARLEY_RATE_LIMIT_PARENT: '0', PARLEY_CONVERSION_TRIES: '1' }
const captions = { kind: 'captions', filename: 'a.vtt' }
const toTarget = ({ url }: RunningServer, key: string): Target => ({ url, key, fetch })

/** A file or artifact that the server has confirmed, with its expected content. */
interface StoredItem {
  readonly id: string
  readonly bytes: Buffer
}

async function uploadFile(target: Target, bytes: Buffer): Promise<StoredItem> {
  const { status, body } = await upload(target, [filePart(bytes), purpose])
  expect(status).toBe(200)
  return { id: body.id, bytes }
}

async function uploadCaptions(target: Target, index: number): Promise<StoredItem> {
  const bytes = Buffer.from(`WEBVTT\n\n00:01.000 --> 00:02.000\nNumber ${index}\n`)
  const { id } = await createUpload(target, { size: bytes.length, body: bytes, metadata: captions })
  return { id, bytes }
}

/** A resumable upload that sends one chunk at a time and tracks the acknowledged offset. */
class GradualUpload {
  readonly bytes = randomBytes(GROWN_BYTES)
  readonly begun: CreatedUpload
  acknowledged = 0

  private constructor(begun: CreatedUpload) {
    this.begun = begun
  }

  static async begin(target: Target): Promise<GradualUpload> {
    return new GradualUpload(await createUpload(target, { size: GROWN_BYTES, metadata: captions }))
  }

  async grow(target: Target, by = 20_000): Promise<void> {
    const piece = this.bytes.subarray(this.acknowledged, this.acknowledged + by)
    const { status, headers } = await patchUpload(target, this.begun, this.acknowledged, piece)
    expect(status).toBe(204)
    this.acknowledged = Number(headers.get('upload-offset'))
  }
}

/** Repeats async functions in parallel loops until the test calls `end`. */
class Load {
  private isOver = false
  private readonly running: Promise<void>[] = []

  /** Starts a loop and resolves after `turns` iterations. */
  async begin(work: (turn: number) => Promise<unknown>, turns = 4): Promise<void> {
    const { promise: hasStarted, resolve } = Promise.withResolvers<void>()
    const run = async () => {
      for (let turn = 0; !this.isOver; turn++) {
        await work(turn)
        if (turn + 1 === turns) resolve()
      }
    }
    const running = run()
    this.running.push(running)
    await Promise.race([hasStarted, running])
  }

  async end(): Promise<void> {
    this.isOver = true
    await Promise.all(this.running)
  }
}

test('a backup of a busy server contains a file for each row and all data acknowledged before the backup started', async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder, env })
  const key = server.key as string
  const target = toTarget(server, key)
  const call = (method: string, path: string, body?: object) =>
    callServer(server.url, method, path, key, body)
  const [files, artifacts, agents]: [StoredItem[], StoredItem[], string[]] = [[], [], []]
  const growing = [await GradualUpload.begin(target), await GradualUpload.begin(target)] as const

  const load = new Load()
  for (const one of growing) await load.begin(() => one.grow(target))
  await load.begin(async () => files.push(await uploadFile(target, randomBytes(20_000))))
  for (const size of [10, 100_000])
    await load.begin(async () => {
      const { id } = await uploadFile(target, randomBytes(size))
      expect((await call('DELETE', `/v1/files/${id}`)).status).toBe(200)
    })
  await load.begin(async (turn) => {
    artifacts.push(await uploadCaptions(target, turn))
    // Waits for each conversion, so that the queue does not grow.
    await waitForState(target, artifacts.at(-1)?.id as string, 'ready')
  }, 2)
  await load.begin(async () => {
    const begun = await createUpload(target, { size: 100, metadata: captions })
    await patchUpload(target, begun, 0, randomBytes(50))
    expect((await callUpload(target, 'DELETE', begun.location)).status).toBe(204)
  })
  await load.begin(async () => {
    agents.push((await call('POST', '/v1/agents', { yaml: GREETER })).body.agent_id)
    const messages = [{ role: 'user', content: 'Hello!' }]
    const model = `agent/${agents.at(-1)}`
    expect((await call('POST', '/v1/chat/completions', { model, messages })).status).toBe(200)
  })

  const before = {
    files: [...files],
    artifacts: [...artifacts],
    agents: [...agents],
    offsets: growing.map(({ acknowledged }) => acknowledged),
  }
  const backup = await runParley(['backup', 'backup.tar.gz', '--json'], { folder, env })
  expect([backup.code, backup.stderr]).toEqual([0, ''])
  expect(JSON.parse(backup.stdout)).toMatchObject({ lost: [], unfinished: [] })
  await load.end()

  const dataDir = join(folder, 'restored')
  const restoring = { folder, env: { ...env, PARLEY_DATA_DIR: dataDir } }
  const restore = await runParley(['restore', 'backup.tar.gz'], restoring)
  expect([restore.code, restore.stderr]).toEqual([0, ''])
  const rows = openSqliteFile(dataDir).prepare('select id, size_bytes from files').all() as {
    id: string
    size_bytes: number
  }[]
  await server.stop()
  const restored = await startServer(restoring)
  const again = toTarget(restored, key)

  const expectFile = async ({ id, bytes }: StoredItem) =>
    expect(Buffer.from(await (await download(again, id)).arrayBuffer())).toEqual(bytes)
  await Promise.all(before.files.map(expectFile))
  for (const { id, bytes } of before.artifacts) {
    await waitForState(again, id, 'ready')
    expect(await readArtifact(again, id)).toEqual(bytes)
  }
  for (const id of before.agents)
    expect((await callServer(again.url, 'GET', `/v1/agents/${id}`, key)).status).toBe(200)
  // The backup may also contain files uploaded while it ran.
  expect(rows.length).toBeGreaterThanOrEqual(before.files.length)
  const expectSize = async ({ id, size_bytes: sizeBytes }: (typeof rows)[0]) =>
    expect((await (await download(again, id)).arrayBuffer()).byteLength).toBe(sizeBytes)
  await Promise.all(rows.map(expectSize))
  for (const [index, one] of growing.entries()) {
    one.acknowledged = await readOffset(again, one.begun)
    expect(one.acknowledged).toBeGreaterThanOrEqual(before.offsets[index] as number)
    await one.grow(again, GROWN_BYTES)
    await waitForState(again, one.begun.id, 'ready')
    expect((await readArtifact(again, one.begun.id)).equals(one.bytes)).toBe(true)
  }
  await restored.stop()
})

test('a killed backup or restore leaves no usable output and does not block the next attempt', async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder, env })
  const target = toTarget(server, server.key as string)
  const kept: StoredItem[] = []
  for (let count = 0; count < 12; count++) kept.push(await uploadFile(target, randomBytes(2 * MIB)))
  const path = (...names: string[]) => join(folder, ...names)

  const killed = startParley(['backup', 'backup.tar.zst'], { folder, env })
  await expect.poll(() => existsSync(path('backup.tar.zst.part')), { interval: 2 }).toBe(true)
  killed.kill('SIGKILL')
  await killed.ended
  expect(existsSync(path('backup.tar.zst'))).toBe(false)
  expect(await runParley(['backup', 'backup.tar.zst'], { folder, env })).toMatchObject({ code: 0 })
  expect((await readdir(folder)).sort()).toEqual(['backup.tar.zst', 'data'])
  expect(await readdir(path('data/files'))).not.toContain('held')
  const [first] = kept as [StoredItem]
  expect(Buffer.from(await (await download(target, first.id)).arrayBuffer())).toEqual(first.bytes)
  await server.stop()

  const restoring = { folder, env: { ...env, PARLEY_DATA_DIR: path('restored') } }
  const half = startParley(['restore', 'backup.tar.zst'], restoring)
  const listBlobs = () => readdir(path('restored/.restore/files')).catch(() => [])
  await expect.poll(async () => (await listBlobs()).length, { interval: 2 }).toBeGreaterThan(0)
  half.kill('SIGKILL')
  await half.ended
  expect(existsSync(path('restored/parley.db'))).toBe(false)
  const refused = await runParley(['serve'], restoring)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('no Parley database')])
  expect(await runParley(['restore', 'backup.tar.zst'], restoring)).toMatchObject({ code: 0 })
  const restored = await startServer(restoring)
  for (const { id, bytes } of kept) {
    const answer = await download(toTarget(restored, target.key), id)
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true)
  }
  await restored.stop()
})
