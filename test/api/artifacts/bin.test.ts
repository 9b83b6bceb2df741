/** Tests the bin, from which uploads can be restored for 30 days. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createArtifactSweeper } from '../../../src/artifacts/maintenance.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, startAppOnDisk, type TestApp } from '../../support/app.ts'
import { auditRowsOf } from '../../support/audit.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import { createTypedClient } from '../../support/rpc.ts'
import {
  createUpload,
  headUpload,
  listArtifactBytes,
  postUpload,
  readArtifact,
  readStatus,
  uploadWhole,
} from '../../support/uploads.ts'

const NOW = 1_800_000_000
const DAY = 86_400
const CAPTIONS = Buffer.from('WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n')
const metadata = { kind: 'captions', filename: 'hello.vtt', name: 'Hello' }

const toBin = (app: TestApp, id: string, key = app.key) =>
  app.call('POST', `/v1/artifacts/${id}/bin`, { key })
const restore = (app: TestApp, id: string, key = app.key) =>
  app.call('POST', `/v1/bin/artifacts/${id}/restore`, { key })
const deleteForever = (app: TestApp, id: string, key = app.key) =>
  app.call('DELETE', `/v1/bin/artifacts/${id}`, { key })
const listBin = async (app: TestApp, key = app.key, query = '') =>
  (await app.call('GET', `/v1/bin/artifacts${query}`, { key })).body
const upload = (app: TestApp) => uploadWhole(app, CAPTIONS, { metadata })
const readUsed = async (app: TestApp) =>
  Number(
    (
      await app.service.deps.db
        .selectFrom('artifacts')
        .select(({ fn }) => fn.sum('kept_bytes').as('bytes'))
        .executeTakeFirstOrThrow()
    ).bytes,
  )

describe('an upload in the bin', () => {
  test('looks deleted to its owner', async () => {
    const app = await startApp()
    const begun = await upload(app)
    const { id } = begun
    expect((await toBin(app, id)).body).toMatchObject({ artifactId: id, binned: true })
    expect((await app.call('GET', '/v1/artifacts')).body.data).toEqual([])
    expect(await readStatus(app, id)).toEqual({ artifactId: id, state: 'unknown', reason: 'deleted' })
    const answers = await Promise.all([
      app.call('GET', `/v1/artifacts/${id}`),
      app.call('GET', `/artifacts/${id}`),
      app.call('GET', `/artifacts/${id}/poster`),
      app.call('DELETE', `/artifacts/${id}`),
      headUpload(app, begun),
      toBin(app, id),
    ])
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404))
  })

  test('looks deleted to the holders of its tokens', async () => {
    const app = await startApp()
    const { body: reserved } = await app.call('POST', '/v1/artifacts', { body: { kind: 'captions' } })
    const { artifact_id: id, view_token: view, upload_token: write } = reserved
    await uploadWhole(app, CAPTIONS, { metadata: { ...metadata, artifactId: id } })
    const read = (key: string, path = '') => app.call('GET', `/artifacts/${id}${path}`, { key })
    expect((await read(view)).status).toBe(200)
    await toBin(app, id)
    expect((await read(view)).status).toBe(404)
    const unknown = { artifactId: id, state: 'unknown', reason: 'deleted' }
    expect((await read(view, '/status')).body).toEqual(unknown)
    expect((await read(write, '/status')).body).toEqual(unknown)
    expect((await app.call('DELETE', `/artifacts/${id}`, { key: write })).status).toBe(404)
    for (const key of [view, write]) {
      expect((await restore(app, id, key)).status).toBe(401)
      expect((await deleteForever(app, id, key)).status).toBe(401)
    }
    await restore(app, id)
    expect((await read(view, '/status')).body).toMatchObject({ state: 'ready' })
  })

  test('is reported as deleted, and as ready after a restore, to clients that watch its status', async () => {
    const app = await startApp()
    const { id } = await upload(app)
    const watching = await createTypedClient(app).artifacts.watch.query({ artifact_id: id })
    const statuses = watching[Symbol.asyncIterator]()
    expect((await statuses.next()).value).toMatchObject({ state: 'ready' })
    await toBin(app, id)
    expect((await statuses.next()).value).toMatchObject({ state: 'unknown', reason: 'deleted' })
    await restore(app, id)
    expect((await statuses.next()).value).toMatchObject({ state: 'ready' })
    await statuses.return?.()
  })

  test('is listed with the time it was binned and the time it will be permanently deleted', async () => {
    const app = await startApp({}, { clock: createFakeClock(NOW) })
    const { id } = await upload(app)
    await toBin(app, id)
    const { createdAt: _, ...item } = (await listBin(app)).data[0]
    expect(item).toEqual({
      ...{ artifactId: id, kind: 'captions', name: 'Hello', filename: 'hello.vtt', size: CAPTIONS.length },
      ...{ binnedAt: NOW, purgeAt: NOW + 30 * DAY },
    })
  })

  test('is listed in pages, most recently binned first', async () => {
    const clock = createFakeClock(NOW)
    const app = await startApp({}, { clock })
    const ids: string[] = []
    for (let count = 0; count < 3; count++) {
      const { id } = await upload(app)
      clock.advance(1)
      await toBin(app, id)
      ids.unshift(id)
    }
    const first = await listBin(app, app.key, '?limit=2')
    expect([first.data.map(({ artifactId }: { artifactId: string }) => artifactId), first.has_more]).toEqual([
      ids.slice(0, 2),
      true,
    ])
    const second = await listBin(app, app.key, `?limit=2&after=${ids[1]}`)
    expect(second.data).toMatchObject([{ artifactId: ids[2] }])
    expect((await app.call('GET', `/v1/bin/artifacts?after=${randomUUID()}`)).status).toBe(400)
  })

  test('is restored with its id and its bytes', async () => {
    const app = await startApp()
    const { id } = await upload(app)
    await toBin(app, id)
    expect((await restore(app, id)).body).toEqual({ artifactId: id, restored: true })
    expect(await readArtifact(app, id)).toEqual(CAPTIONS)
    expect((await app.call('GET', '/v1/artifacts')).body.data).toMatchObject([{ artifactId: id }])
    expect((await listBin(app)).data).toEqual([])
    expect((await restore(app, id)).status).toBe(404)
  })

  test('counts toward the quota, and its id cannot be used for another upload', async () => {
    const app = await startApp()
    const { id } = await upload(app)
    const used = await readUsed(app)
    await toBin(app, id)
    expect(await readUsed(app)).toBe(used)
    const full = await startApp({ PARLEY_STORAGE_QUOTA_BYTES: String(CAPTIONS.length + 10) })
    const first = await upload(full)
    await toBin(full, first.id)
    expect((await postUpload(full, { size: CAPTIONS.length, metadata })).status).toBe(413)
    const again = await postUpload(app, { metadata: { ...metadata, artifactId: id } })
    expect(again.status).toBe(409)
  })

  test('can be deleted permanently with its bytes, after which its id can be reused', async () => {
    const dataDir = await makeFolder()
    const app = await startApp({ PARLEY_DATA_DIR: dataDir })
    const { id } = await upload(app)
    expect((await deleteForever(app, id)).status).toBe(404)
    await toBin(app, id)
    expect((await listArtifactBytes(dataDir)).kept).not.toEqual([])
    expect((await deleteForever(app, id)).body).toEqual({ artifactId: id, deleted: true })
    expect((await listArtifactBytes(dataDir)).kept).toEqual([])
    expect((await listBin(app)).data).toEqual([])
    expect((await restore(app, id)).status).toBe(404)
    expect((await postUpload(app, { metadata: { ...metadata, artifactId: id } })).status).toBe(201)
  })

  test('is deleted with its bytes after 30 days, but not earlier', async () => {
    const clock = createFakeClock(NOW)
    const dataDir = await makeFolder()
    const app = await startApp({ PARLEY_DATA_DIR: dataDir }, { clock })
    const { id } = await upload(app)
    await toBin(app, id)
    const sweep = (now: number) =>
      createArtifactSweeper({ ...app.service.deps, clock: createFakeClock(now) }).run()
    await sweep(NOW + 30 * DAY - 1)
    expect((await listBin(app)).data).toHaveLength(1)
    const rows = await auditRowsOf(app, () => sweep(NOW + 30 * DAY))
    expect(rows).toMatchObject([{ action: 'artifact.delete', actor_kind: 'service', target_id: id }])
    expect((await listBin(app)).data).toEqual([])
    expect((await listArtifactBytes(dataDir)).kept).toEqual([])
  })

  test('is recorded in the audit log without its file name', async () => {
    const app = await startApp()
    const { id } = await upload(app)
    const rows = await auditRowsOf(app, async () => {
      await toBin(app, id)
      await restore(app, id)
    })
    expect(rows.map(({ action, target_id }) => [action, target_id])).toEqual([
      ['artifact.bin', id],
      ['artifact.restore', id],
    ])
    expect(JSON.parse(String(rows[0]?.details))).toEqual({ kind: 'captions', bytes: CAPTIONS.length })
  })

  test('cannot be listed, restored or deleted with a different parent key', async () => {
    const app = await startApp()
    const other = await createTenant(app)
    const { id } = await upload(app)
    expect((await toBin(app, id, other)).status).toBe(404)
    await toBin(app, id)
    expect((await listBin(app, other)).data).toEqual([])
    expect((await app.call('GET', `/v1/bin/artifacts?after=${id}`, { key: other })).status).toBe(400)
    expect((await restore(app, id, other)).status).toBe(404)
    expect((await deleteForever(app, id, other)).status).toBe(404)
    expect((await listBin(app)).data).toHaveLength(1)
  })

  test('survives a restart', async () => {
    const app = await startAppOnDisk({})
    const { id } = await upload(app)
    await toBin(app, id)
    await app.service.close()
    const { dataDir } = app.service.deps.config
    const again = await startApp({ PARLEY_DATA_DIR: dataDir, PARLEY_PARENT_KEY: app.key })
    expect((await restore(again, id)).status).toBe(200)
    expect(await readArtifact(again, id)).toEqual(CAPTIONS)
  })
})

test('an unfinished upload cannot be moved to the bin', async () => {
  const app = await startApp()
  const { id } = await createUpload(app, { size: 100 })
  const { status, body } = await toBin(app, id)
  expect([status, body.error.message]).toEqual([409, expect.stringContaining('this one is uploading')])
  expect((await toBin(app, randomUUID())).status).toBe(404)
})
