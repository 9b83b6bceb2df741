/** Tests that uploads to a full disk return 507 and can resume when there is free space again. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openSqliteFile } from '../support/database.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { makeFolder, startServer } from '../support/process.ts'
import { findMountError, prepareSmallDisk } from '../support/small-disk.ts'
import {
  callUpload,
  createUpload,
  finishUpload,
  patchUpload,
  postUpload,
  readArtifact,
  readOffset,
  readStatus,
  type Target,
  uploadWhole,
  waitForState,
} from '../support/uploads.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const MIB = 1024 ** 2
const error = { ok: false, error: expect.any(String) }

const obstacle = findMountError()
if (obstacle !== undefined)
  process.stderr.write(`small-disk tests are skipped: no file system can be mounted here: ${obstacle}\n`)

/**
 * A script that runs a service whose free-space check always passes, so that a write fails on the full disk.
 */
const overconfident = (dataDir: string) => `
  import { parseConfig } from ${source('config/parse.ts')}
  import { createService } from ${source('server/service.ts')}
  import { openFolder } from ${source('storage/folder.ts')}
  import { toResumableStore } from ${source('storage/local.ts')}
  const dataDir = ${JSON.stringify(dataDir)}
  const { config } = await parseConfig({ PARLEY_DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'silent' })
  const space = { freeBytes: 1e12, totalBytes: 1e12 }
  const folder = await openFolder(dataDir + '/artifacts', async () => space)
  const service = await createService({ config, artifactStore: toResumableStore(folder, true) })
  console.log(service.url)
  console.log(service.firstParentKey)
`

async function startOverconfident(sizeMebibytes: number) {
  const dataDir = join(await makeFolder(), 'data')
  const server = new OtherProcess(overconfident(dataDir), await prepareSmallDisk(dataDir, sizeMebibytes))
  const target: Target = { url: await server.hears(), key: await server.hears(), fetch }
  return { dataDir, server, target }
}

async function expectWhole(target: Target, id: string, bytes: Buffer): Promise<void> {
  await waitForState(target, id, 'ready')
  expect((await readArtifact(target, id)).equals(bytes)).toBe(true)
}

describe.skipIf(obstacle !== undefined)('a server whose disk fills up', () => {
  test('returns 507 to an upload that does not fit, and other requests still succeed', async () => {
    const { dataDir, server, target } = await startOverconfident(24)
    const kept = randomBytes(4 * MIB)
    const { id: keptId } = await uploadWhole(target, kept)
    const bodies = [randomBytes(14 * MIB), randomBytes(14 * MIB)] as const
    const uploads = [
      await createUpload(target, { size: 14 * MIB }),
      await createUpload(target, { size: 14 * MIB }),
    ] as const
    const answers = await Promise.all(
      uploads.map((upload, index) => patchUpload(target, upload, 0, bodies[index] as Buffer)),
    )
    const offsets = [await readOffset(target, uploads[0]), await readOffset(target, uploads[1])] as const
    const failed = offsets[0] < offsets[1] ? 0 : 1
    expect(answers[failed]).toMatchObject({ status: 507, body: error })

    // While the disk is full, writes return 507 and reads succeed.
    const [begun, bytes] = [uploads[failed], bodies[failed]] as const
    const filler = await createUpload(target, { size: 24 * MIB })
    expect((await patchUpload(target, filler, 0, randomBytes(24 * MIB))).status).toBe(507)
    // The server may store some of these bytes before it returns 507, so they must be the next bytes of the
    // upload.
    const again = await patchUpload(target, begun, offsets[failed], bytes.subarray(offsets[failed]))
    expect(again).toMatchObject({ status: 507, body: error })
    expect((await postUpload(target, { body: randomBytes(10) })).status).toBe(507)
    expect(await readStatus(target, begun.id)).toMatchObject({ state: 'uploading' })
    expect((await fetch(`${target.url}/healthz`)).status).toBe(200)
    await expectWhole(target, keptId, kept)

    for (const other of [filler, uploads[failed === 0 ? 1 : 0]])
      expect((await callUpload(target, 'DELETE', other.location)).status).toBe(204)
    await finishUpload(target, begun, bytes)
    await expectWhole(target, keptId, kept)
    await server.kill()
    expect(openSqliteFile(dataDir).pragma('integrity_check', { simple: true })).toBe('ok')
  })

  test('returns 507 to a new upload that would use up the reserved free space', async () => {
    const folder = await makeFolder()
    const dataDir = join(folder, 'data')
    // The service keeps 2 GiB of the disk free.
    const wrapper = await prepareSmallDisk(dataDir, 2_048 + 48)
    const server = await startServer({ folder, wrapper, env: { PARLEY_DATA_DIR: dataDir } })
    onTestFinished(() => server.kill('SIGKILL'))
    const target = { url: server.url, key: server.key as string, fetch }
    const bytes = randomBytes(30 * MIB)
    const first = await uploadWhole(target, bytes)
    const under = await createUpload(target, { size: 10 * MIB, body: bytes.subarray(0, MIB) })
    expect(await postUpload(target, { size: 30 * MIB })).toMatchObject({ status: 507, body: error })
    expect(await readOffset(target, under)).toBe(MIB)
    expect((await callUpload(target, 'DELETE', first.location)).status).toBe(204)
    await uploadWhole(target, bytes)
    await finishUpload(target, under, bytes.subarray(0, 10 * MIB))
  })
})
