/** Tests that the progress of a slow upload is recorded while its request is still open. */
import { afterEach, expect, test, vi } from 'vitest'
import { startApp } from '../../support/app.ts'
import { eventually } from '../../support/process.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'
import { BODY_TYPE, beginUpload, readStatus } from '../../support/uploads.ts'

afterEach(() => {
  vi.useRealTimers()
})

test("a slow upload's status includes new bytes after one second", async () => {
  const app = await startApp()
  const begun = await beginUpload(app, { size: 10 })
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const connection = await RawConnection.open(app)
  const head = ['Host: x', `Authorization: Bearer ${app.key}`, 'Tus-Resumable: 1.0.0', 'Upload-Offset: 0']
  const body = [`Content-Type: ${BODY_TYPE}`, 'Content-Length: 10']
  connection.send(toRequest(`PATCH ${begun.location}`, [...head, ...body]))
  connection.send('01234')
  const { db } = app.service.deps
  const readFence = async () => (await db.selectFrom('artifacts').select('fence').executeTakeFirst())?.fence
  expect(await eventually(readFence, 1)).toBe(1)
  const { resumable } = app.service.deps.artifacts.store
  const { blob } = await db.selectFrom('artifacts').select('blob').executeTakeFirstOrThrow()
  expect(await eventually(() => resumable.findSize(String(blob)), 5)).toBe(5)
  const readReceived = async () => (await readStatus(app, begun.id)).bytesReceived
  expect(await readReceived()).toBe(0)
  vi.advanceTimersByTime(1_000)
  expect(await eventually(readReceived, 5)).toBe(5)
  connection.send('56789')
  await connection.receives(/^HTTP\/1\.1 204 /)
})
