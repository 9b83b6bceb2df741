/** Tests that the progress of a slow upload is recorded while its request is still open. */
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { eventually, makeFolder } from '../../support/process.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'
import { S3Server } from '../../support/s3-server.ts'
import { BODY_TYPE, createUpload, readOffset, readStatus } from '../../support/uploads.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Sends the headers of a ten-byte `PATCH` and its first five bytes, with the server's timers paused. */
async function startSlowUpload(app: TestApp) {
  const begun = await createUpload(app, { size: 10 })
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const connection = await RawConnection.open(app)
  const head = ['Host: x', `Authorization: Bearer ${app.key}`, 'Tus-Resumable: 1.0.0', 'Upload-Offset: 0']
  const body = [`Content-Type: ${BODY_TYPE}`, 'Content-Length: 10']
  connection.send(toRequest(`PATCH ${begun.location}`, [...head, ...body]))
  connection.send('01234')
  const { db } = app.service.deps
  const readFence = async () => (await db.selectFrom('artifacts').select('fence').executeTakeFirst())?.fence
  expect(await eventually(readFence, 1)).toBe(1)
  const readReceived = async () => (await readStatus(app, begun.id)).bytesReceived
  return { begun, connection, readReceived }
}

test("a slow upload's status includes new bytes after one second", async () => {
  const app = await startApp()
  const { connection, readReceived } = await startSlowUpload(app)
  const { db, artifacts } = app.service.deps
  const { blob } = await db.selectFrom('artifacts').select('blob').executeTakeFirstOrThrow()
  expect(await eventually(() => artifacts.store.resumable.findSize(String(blob)), 5)).toBe(5)
  expect(await readReceived()).toBe(0)
  vi.advanceTimersByTime(1_000)
  expect(await eventually(readReceived, 5)).toBe(5)
  connection.send('56789')
  await connection.receives(/^HTTP\/1\.1 204 /)
})

/** Starts a slow upload to a bucket; `readLater` reads the status a second later. */
async function startSlowUploadToBucket() {
  const server = await S3Server.start()
  const app = await startApp({ ...server.environment, PARLEY_DATA_DIR: join(await makeFolder(), 'data') })
  const upload = await startSlowUpload(app)
  const readLater = () => {
    vi.advanceTimersByTime(1_000)
    return upload.readReceived()
  }
  return { server, app, ...upload, readLater }
}

test('the status of a slow upload includes bytes that the server has not yet sent to the bucket', async () => {
  const { server, app, begun, connection, readReceived, readLater } = await startSlowUploadToBucket()
  server.fail('PutObject', 'hang')
  expect(await eventually(readLater, 5)).toBe(5)
  expect(await readOffset(app, begun)).toBe(0)
  connection.send('56')
  expect(await eventually(readLater, 7)).toBe(7)
  expect(await readReceived()).toBe(7)
})

test('the status of an interrupted upload reports the bytes in the bucket', async () => {
  const { app, begun, connection, readReceived, readLater } = await startSlowUploadToBucket()
  expect(await eventually(readLater, 5)).toBe(5)
  connection.reset()
  expect(await eventually(() => readOffset(app, begun), 5)).toBe(5)
  expect(await readReceived()).toBe(5)
})
