/** Tests that a restarted server recovers uploads after the previous server was killed. */
import { createHash, randomBytes } from 'node:crypto'
import { open, rename, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { toBlobName } from '../../src/storage/resumable-files.ts'
import { openSqliteFile } from '../support/database.ts'
import { eventually, makeFolder, startServer } from '../support/process.ts'
import { RawConnection, toRequest } from '../support/raw-connection.ts'
import {
  BODY_TYPE,
  type CreatedUpload,
  createUpload,
  finishUpload,
  listArtifactBytes,
  patchUpload,
  readArtifact,
  readOffset,
  type Target,
  waitForState,
} from '../support/uploads.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const MIB = 1024 ** 2

/** Creates a data directory; returns a function that starts a server with it. */
async function startWorld() {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  let key: string | undefined
  const start = async (env: Readonly<Record<string, string>> = {}) => {
    const server = await startServer({ folder, env: { PARLEY_DATA_DIR: dataDir, ...env } })
    key ??= server.key
    return { server, target: { url: server.url, key: key as string, fetch } }
  }
  return { dataDir, start }
}

/** Sends a PATCH request with only part of its body. */
async function stall(
  { url, key }: Target,
  { location }: CreatedUpload,
  bytes: Buffer,
  length: number,
): Promise<void> {
  const connection = await RawConnection.open({ url })
  const head = ['Host: x', `Authorization: Bearer ${key}`, 'Tus-Resumable: 1.0.0', 'Upload-Offset: 0']
  const type = [`Content-Type: ${BODY_TYPE}`, `Content-Length: ${length}`]
  connection.send(toRequest(`PATCH ${location}`, [...head, ...type]))
  connection.send(bytes)
}

test.each([true, false])(
  'an upload resumes after the server is killed mid-upload (fsync: %s)',
  async (isSynced) => {
    const env = { PARLEY_UPLOAD_FSYNC: String(isSynced) }
    const world = await startWorld()
    const bytes = randomBytes(40 * MIB)
    const checksum = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    const first = await world.start(env)
    const begun = await createUpload(first.target, { size: bytes.length, metadata: { checksum } })
    await stall(first.target, begun, bytes.subarray(0, 30 * MIB), bytes.length)
    expect(await eventually(async () => (await readOffset(first.target, begun)) >= 8 * MIB, true)).toBe(true)
    const promised = await readOffset(first.target, begun)
    await first.server.crash()

    const second = await world.start(env)
    const offset = await readOffset(second.target, begun)
    expect(offset).toBeGreaterThanOrEqual(promised)
    expect(offset).toBeLessThanOrEqual(30 * MIB)
    await finishUpload(second.target, begun, bytes)
    await second.server.stop()
  },
)

test('an upload resumes after the server is killed three times in a row', async () => {
  const world = await startWorld()
  const bytes = randomBytes(5 * MIB)
  let { server, target } = await world.start()
  const begun = await createUpload(target, { size: bytes.length })
  for (let part = 0; part < 3; part++) {
    const offset = await readOffset(target, begun)
    await patchUpload(target, begun, offset, bytes.subarray(offset, offset + MIB))
    await server.crash()
    ;({ server, target } = await world.start())
  }
  expect(await readOffset(target, begun)).toBe(3 * MIB)
  await finishUpload(target, begun, bytes)
})

describe('an upload whose server is killed after the last byte', () => {
  /**
   * Stores all of an upload's bytes but does not complete it, as if the server had been killed in between.
   */
  async function leaveComplete(
    world: Awaited<ReturnType<typeof startWorld>>,
    bytes: Buffer,
  ): Promise<CreatedUpload> {
    const { server, target } = await world.start()
    const begun = await createUpload(target, { size: bytes.length, body: bytes.subarray(0, 4) })
    await server.crash()
    const database = openSqliteFile(world.dataDir)
    const [name = ''] = (await listArtifactBytes(world.dataDir)).growing
    await writeFile(join(world.dataDir, 'artifacts', 'growing', name), bytes)
    database.prepare('update artifacts set received_bytes = size_bytes, lease_until = 1e10').run()
    database.close()
    return begun
  }

  test.each([
    ['before the blob was moved', false],
    ['after the blob was moved', true],
  ])('is completed by the next server (%s)', async (_when, isMoved) => {
    const world = await startWorld()
    const bytes = randomBytes(100_000)
    const begun = await leaveComplete(world, bytes)
    const [name = ''] = (await listArtifactBytes(world.dataDir)).growing
    const root = join(world.dataDir, 'artifacts')
    const blob = toBlobName(name)
    if (isMoved) await rename(join(root, 'growing', name), join(root, blob))
    const { target } = await world.start()
    await waitForState(target, begun.id, 'ready')
    expect((await readArtifact(target, begun.id)).equals(bytes)).toBe(true)
    expect(await listArtifactBytes(world.dataDir)).toEqual({ kept: [blob], growing: [] })
  })

  test('is converted again by the next server if its conversion was running', async () => {
    const world = await startWorld()
    const bytes = randomBytes(100_000)
    const { server, target } = await world.start()
    const begun = await createUpload(target, { size: bytes.length, body: bytes })
    await waitForState(target, begun.id, 'ready')
    await server.crash()
    openSqliteFile(world.dataDir).exec(
      `update artifacts set state = 'processing', served_blob = null, served_bytes = null;
       insert into jobs (kind, blob, is_taken, next_at) select 'convert', blob, 1, 1e10 from artifacts`,
    )
    const second = await world.start()
    await waitForState(second.target, begun.id, 'ready')
    expect((await readArtifact(second.target, begun.id)).equals(bytes)).toBe(true)
  })
})

describe('an upload whose file size differs from its database row', () => {
  test.each([
    ['less', 70_000, 70_000],
    ['more', 130_000, 100_000],
    ['nothing', 0, 0],
  ])(
    'resumes from the smaller of the two sizes (the file contains %s)',
    async (_what, sizeBytes, expected) => {
      const world = await startWorld()
      const bytes = randomBytes(200_000)
      const first = await world.start()
      const begun = await createUpload(first.target, { size: bytes.length, body: bytes.subarray(0, 100_000) })
      await first.server.crash()
      const [name = ''] = (await listArtifactBytes(world.dataDir)).growing
      const path = join(world.dataDir, 'artifacts', 'growing', name)
      if (sizeBytes <= 100_000) await truncate(path, sizeBytes)
      else {
        // Appends bytes that the row does not count.
        await using file = await open(path, 'a')
        await file.writeFile(Buffer.alloc(sizeBytes - 100_000, 'x'))
      }
      const second = await world.start({ LOG_LEVEL: 'silent' })
      expect(await readOffset(second.target, begun)).toBe(expected)
      await finishUpload(second.target, begun, bytes)
    },
  )
})
