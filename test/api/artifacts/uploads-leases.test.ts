/** Tests that only the holder of the lease can write to an upload. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { acquireOrStealLease, acquireUploadLease } from '../../../src/artifacts/coordination.ts'
import { acquireLease, completeLeased, findUploadRow, updateReceived } from '../../../src/artifacts/store.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { eventually } from '../../support/process.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'
import {
  BODY_TYPE,
  type CreatedUpload,
  callUpload,
  createUpload,
  headUpload,
  patchUpload,
  postUpload,
  readArtifact,
  readOffset,
  waitForState,
} from '../../support/uploads.ts'

// Disk writes may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const MIB = 1024 ** 2

/** Opens a connection that sends part of a PATCH body and then stalls. */
async function stall(
  app: TestApp,
  { location }: CreatedUpload,
  bytes: Buffer,
  length: number,
): Promise<RawConnection> {
  const connection = await RawConnection.open(app)
  const head = ['Host: x', `Authorization: Bearer ${app.key}`, 'Tus-Resumable: 1.0.0', 'Upload-Offset: 0']
  connection.send(
    toRequest(`PATCH ${location}`, [...head, `Content-Type: ${BODY_TYPE}`, `Content-Length: ${length}`]),
  )
  connection.send(bytes)
  return connection
}

async function getUploadRow(app: TestApp) {
  const { blob } = await app.service.deps.db.selectFrom('artifacts').select('blob').executeTakeFirstOrThrow()
  const row = await findUploadRow(app.service.deps.db, { blob: blob as string })
  if (row === undefined) throw new Error('there is no upload')
  return row
}

const untilLeased = async (app: TestApp) =>
  expect(await eventually(async () => (await getUploadRow(app)).lease_until !== null, true)).toBe(true)

describe('a reconnecting upload client', () => {
  test('can write immediately, and its old connection receives 423', async () => {
    const app = await startApp()
    const begun = await createUpload(app, { size: 10 })
    const lost = await stall(app, begun, Buffer.from('01234'), 10)
    await untilLeased(app)
    const offset = await readOffset(app, begun)
    expect(offset).toBe(0)
    expect((await patchUpload(app, begun, offset, Buffer.from('abcdefghij'))).status).toBe(204)
    await lost.receives(/^HTTP\/1\.1 423 .*Retry-After: 1.*"ok":false/s)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('abcdefghij')
  })

  test('can resume after the bytes that the interrupted request stored', async () => {
    const app = await startApp()
    const bytes = randomBytes(24 * MIB)
    const begun = await createUpload(app, { size: bytes.length })
    await stall(app, begun, bytes.subarray(0, 20 * MIB), bytes.length)
    expect(await eventually(async () => (await readOffset(app, begun)) >= 8 * MIB, true)).toBe(true)
    // A write may finish between HEAD and PATCH, so the client must read the offset again after a 409.
    const resume = async () => {
      const offset = await readOffset(app, begun)
      return (await patchUpload(app, begun, offset, bytes.subarray(offset))).status
    }
    expect(await eventually(resume, 204)).toBe(204)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).equals(bytes)).toBe(true)
  })

  test('does not interrupt the current writer if it sends a wrong offset', async () => {
    const app = await startApp()
    const begun = await createUpload(app, { size: 10 })
    const writing = await stall(app, begun, Buffer.from('01234'), 10)
    await untilLeased(app)
    expect((await patchUpload(app, begun, 3, Buffer.from('x'))).status).toBe(409)
    expect((await headUpload(app, begun)).status).toBe(200)
    writing.send('56789')
    await writing.receives(/^HTTP\/1\.1 204 /)
  })
})

test('only one of several concurrent writers to an upload stores its bytes', async () => {
  const app = await startApp()
  const begun = await createUpload(app, { size: 3 * MIB })
  const bodies = Array.from({ length: 8 }, (_, index) => Buffer.alloc(3 * MIB, index))
  const statuses = (await Promise.all(bodies.map((body) => patchUpload(app, begun, 0, body)))).map(
    ({ status }) => status,
  )
  expect(statuses.filter((status) => status === 204)).toHaveLength(1)
  expect(statuses.filter((status) => status !== 204 && status !== 409 && status !== 423)).toEqual([])
  await waitForState(app, begun.id, 'ready')
  const read = await readArtifact(app, begun.id)
  expect(bodies.some((body) => body.equals(read))).toBe(true)
})

describe('an upload lease', () => {
  test('locks the upload until it expires if another process holds it', async () => {
    const app = await startApp()
    const { db } = app.service.deps
    const begun = await createUpload(app, { size: 5 })
    // This server cannot ask the other process to release its lease.
    const now = Math.floor(Date.now() / 1000)
    const other = await acquireLease(db, await getUploadRow(app), now, now + 30)
    const refusal = { reason: 'locked', details: { retryAfterSeconds: 1 } }
    const upload = { ...(await getUploadRow(app)), id: begun.id }
    await expect(acquireUploadLease(app.service.deps, upload)).rejects.toMatchObject(refusal)
    expect((await headUpload(app, begun)).status).toBe(200)

    await db
      .updateTable('artifacts')
      .set({ lease_until: now - 1 })
      .execute()
    expect((await patchUpload(app, begun, 0, Buffer.from('hel'))).status).toBe(204)
    // The old writer resumes with an outdated fencing number.
    const late = other as NonNullable<typeof other>
    expect(await updateReceived(db, late, 0, { received_bytes: 5 })).toBe(false)
    expect(await updateReceived(db, late, 3, { received_bytes: 5 })).toBe(false)
    expect(await completeLeased(db, late, {})).toBe(false)
    expect(await readOffset(app, begun)).toBe(3)
  })

  test('does not lock a new upload with the same id', async () => {
    const app = await startApp()
    const { db } = app.service.deps
    const { id: artifactId, location } = await createUpload(app, { size: 5 })
    const now = Math.floor(Date.now() / 1000)
    const lease = await acquireLease(db, await getUploadRow(app), now, now + 30)
    await callUpload(app, 'DELETE', location)
    await createUpload(app, { size: 5, metadata: { artifactId } })
    const next = await acquireLease(db, await getUploadRow(app), now, now + 30)
    expect(next?.fence).toBe(lease?.fence)
    expect(await updateReceived(db, lease as NonNullable<typeof lease>, 0, { received_bytes: 5 })).toBe(false)
  })

  test('is released at the end of a request, even if the request fails', async () => {
    const app = await startApp()
    const begun = await createUpload(app, { size: 10 })
    await patchUpload(app, begun, 0, Buffer.from('012'))
    expect(await getUploadRow(app)).toMatchObject({ lease_until: null, fence: 1, received_bytes: 3 })
    const conflicting = await stall(app, begun, Buffer.from('x'), 10)
    await conflicting.receives(/^HTTP\/1\.1 409 /)
    expect(await getUploadRow(app)).toMatchObject({ lease_until: null, received_bytes: 3 })
  })
})

test('an upload is completed even if its lease is taken over after its last byte was stored', async () => {
  const app = await startApp()
  const { artifacts } = app.service.deps
  const begun = await createUpload(app, { size: 5 })
  const stopListening = artifacts.changes.subscribe(begun.id, () => {
    stopListening()
    void artifacts.activeUploads.stop(begun.id, 'taken-over')
  })
  expect([204, 423]).toContain((await patchUpload(app, begun, 0, Buffer.from('hello'))).status)
  await waitForState(app, begun.id, 'ready')
  expect((await readArtifact(app, begun.id)).toString()).toBe('hello')
})

test('deleting an upload aborts the request that writes to it', async () => {
  const app = await startApp()
  const begun = await createUpload(app, { size: 10 })
  const writing = await stall(app, begun, Buffer.from('01234'), 10)
  await untilLeased(app)
  expect((await callUpload(app, 'DELETE', begun.location)).status).toBe(204)
  await writing.receives(/^HTTP\/1\.1 404 .*"ok":false/s)
  const again = await postUpload(app, { metadata: { artifactId: begun.id } })
  expect(again.status).toBe(201)
})

test('a server that stops mid-upload stores the received bytes and returns 503', async () => {
  const app = await startApp({ PARLEY_SHUTDOWN_SECONDS: '0.1' })
  const begun = await createUpload(app, { size: 10 })
  const writing = await stall(app, begun, Buffer.from('01234'), 10)
  await untilLeased(app)
  const { db } = app.service.deps
  const changed = new Promise<number>((resolve) => {
    app.service.deps.artifacts.changes.subscribe(begun.id, async () => {
      const row = await db.selectFrom('artifacts').select('received_bytes').executeTakeFirstOrThrow()
      resolve(row.received_bytes)
    })
  })
  const closing = app.service.close()
  await writing.receives(/^HTTP\/1\.1 503 .*"ok":false/s)
  expect(await changed).toBe(5)
  await closing
})

test('a write to an upload that was just deleted returns 404', async () => {
  const app = await startApp()
  const begun = await createUpload(app, { size: 10 })
  const row = await getUploadRow(app)
  expect((await callUpload(app, 'DELETE', begun.location)).status).toBe(204)
  await expect(acquireOrStealLease(app.service.deps, row)).rejects.toMatchObject({ status: 404 })
})
