/** Tests that uploads keep acknowledged bytes and resume when a server is killed several times. */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { findResumableFile } from '../../src/storage/resumable-files.ts'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { openSqliteFile } from '../support/database.ts'
import { makeFolder, startServer } from '../support/process.ts'
import { type ClientUpload, createClientUpload } from '../support/tus-client.ts'
import { readArtifact, waitForState } from '../support/uploads.ts'

// New processes and large transfers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const MIB = 1024 ** 2
const UPLOADS = 4
const SIZE = 24 * MIB
const CHUNK = 3 * MIB
/** The server is killed after each of these numbers of accepted chunks. */
const killsAfter: readonly number[] = [2, 5, 9]

/** An upload with its content and the number of bytes that the server has acknowledged. */
interface WatchedUpload extends ClientUpload {
  readonly name: string
  readonly bytes: Buffer
  id: string
  promisedBytes: number
}

/** Creates an upload that sends one request if its index is even, and several chunks otherwise. */
function startWatching(url: string, key: string, index: number, onChunk: () => void): WatchedUpload {
  const bytes = randomBytes(SIZE)
  const name = `upload ${index}`
  const client = createClientUpload(
    bytes,
    { url, key },
    {
      metadata: { filename: 'clip.mp4', name },
      chunkSize: index % 2 === 0 ? SIZE : CHUNK,
      onChunkComplete: onChunk,
      onAfterResponse(_request, response) {
        watched.id ||= response.getHeader('X-Artifact-Id') ?? ''
        watched.promisedBytes = Math.max(
          watched.promisedBytes,
          Number(response.getHeader('Upload-Offset') ?? 0),
        )
      },
    },
  )
  const watched: WatchedUpload = { ...client, name, bytes, id: '', promisedBytes: 0 }
  return watched
}

/** Reads an upload's row and bytes from a killed server's data directory. */
async function readLeft(dataDir: string, { name }: WatchedUpload) {
  const database = openSqliteFile(dataDir)
  try {
    const query = database.prepare('select blob, state, received_bytes from artifacts where name = ?')
    const row = query.get(name) as { blob: string; state: string; received_bytes: number }
    const active = await findResumableFile(join(dataDir, 'artifacts', 'growing'), row.blob)
    return { ...row, file: await readFile(active?.path ?? join(dataDir, 'artifacts', row.blob)) }
  } finally {
    database.close()
  }
}

async function expectKept(dataDir: string, upload: WatchedUpload): Promise<number> {
  const { file, received_bytes: receivedBytes } = await readLeft(dataDir, upload)
  expect(receivedBytes).toBeGreaterThanOrEqual(upload.promisedBytes)
  expect(file.length).toBeGreaterThanOrEqual(receivedBytes)
  expect(file.subarray(0, receivedBytes).equals(upload.bytes.subarray(0, receivedBytes))).toBe(true)
  return receivedBytes
}

test('four uploads retain all acknowledged bytes when the server is killed three times', async () => {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  const start = () => startServer({ folder, env: { PARLEY_DATA_DIR: dataDir } })
  let server = await start()
  const key = server.key as string
  const failed = Promise.withResolvers<never>()
  const keptBytes: number[] = []

  const proxy = await CuttingProxy.open(server.url)
  onTestFinished(() => proxy.close())
  let chunks = 0
  let kills = 0
  const onChunk = () => {
    if (!killsAfter.includes(++chunks)) return
    kills++
    const restarted = restart()
    restarted.catch(failed.reject)
    proxy.forwardTo(restarted)
    proxy.cut('reset')
  }
  async function restart(): Promise<string> {
    server.kill('SIGKILL')
    await server.ended
    for (const upload of uploads) keptBytes.push(await expectKept(dataDir, upload))
    server = await start()
    return server.url
  }

  const uploads = Array.from({ length: UPLOADS }, (_, index) => startWatching(proxy.url, key, index, onChunk))
  for (const { upload } of uploads) upload.start()
  await Promise.race([failed.promise, Promise.all(uploads.map(({ done }) => done))])

  expect(kills).toBe(killsAfter.length)
  // At least one upload must have progressed, or the test would prove nothing.
  expect(Math.max(...keptBytes)).toBeGreaterThanOrEqual(CHUNK)
  const target = { url: server.url, key, fetch }
  for (const { id, bytes } of uploads) {
    await waitForState(target, id, 'ready')
    expect((await readArtifact(target, id)).equals(bytes)).toBe(true)
  }
})
