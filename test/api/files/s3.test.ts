/** Tests files that the service stores in a bucket of a scripted S3 server. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createFileSweeper } from '../../../src/files/files.ts'
import { startAppOnDisk } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { download, filePart, purpose, upload } from '../../support/files.ts'
import { sendPartialFile } from '../../support/partial-file-upload.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'
import { S3Server } from '../../support/s3-server.ts'
import { MIB } from '../../support/s3-store.ts'

const HOUR = 3600

describe('an interrupted upload', () => {
  test.each([
    ['the client resets the connection', (connection: RawConnection) => connection.reset()],
    ['the client half-closes the connection', (connection: RawConnection) => connection.endSending()],
  ])('leaves nothing in the bucket if %s', async (_why, disconnect) => {
    const server = await S3Server.start()
    const app = await startAppOnDisk(server.environment)
    const connection = await sendPartialFile(app, 20 * MIB)
    await expect.poll(() => server.uploads.size).toBe(1)
    disconnect(connection)
    await expect.poll(() => server.uploads.size).toBe(0)
    expect(server.listBlobs()).toEqual([])
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
  })
})

describe('an unavailable bucket', () => {
  const accessDenied = { status: 403, code: 'AccessDenied' }

  test('makes uploads and downloads return 503 but does not affect the file list', async () => {
    const server = await S3Server.start()
    const app = await startAppOnDisk(server.environment)
    const { body: file } = await upload(app)
    for (const operation of ['PutObject', 'GetObject', 'CreateMultipartUpload'] as const)
      server.fail(operation, accessDenied)
    const refused = await upload(app)
    expect([refused.status, refused.body.error.code]).toEqual([503, 'service_unavailable'])
    expect((await upload(app, [filePart(randomBytes(9 * MIB)), purpose])).status).toBe(503)
    const answer = await download(app, file.id)
    expect([answer.status, (await answer.json()).error.code]).toEqual([503, 'service_unavailable'])
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([file])
    server.heal()
    expect(await (await download(app, file.id)).text()).toBe('hello')
  })

  test('delays only the deletion of the bytes when a file is deleted', async () => {
    const server = await S3Server.start()
    const clock = createFakeClock(Math.floor(Date.now() / 1000))
    const app = await startAppOnDisk(server.environment, { clock })
    const { body: file } = await upload(app)
    server.fail('DeleteObject', accessDenied, 1)
    expect((await app.call('DELETE', `/v1/files/${file.id}`)).status).toBe(200)
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
    expect(server.listBlobs()).toHaveLength(1)
    clock.advance(2 * HOUR)
    await createFileSweeper(app.service.deps).run()
    expect(server.listBlobs()).toEqual([])
  })

  test('is reported by /readyz, as is a full bucket', async () => {
    const server = await S3Server.start()
    const clock = createFakeClock()
    const app = await startAppOnDisk(server.environment, { clock })
    const readReady = async () => {
      const { status, body } = await app.call('GET', '/readyz')
      return [status, body.status, body.checks.storage]
    }
    expect(await readReady()).toEqual([200, 'ready', 'up'])
    server.fail('HeadBucket', accessDenied)
    clock.advance(5)
    expect(await readReady()).toEqual([503, 'unavailable', 'down'])
    server.heal()
    server.fail('PutObject', { status: 507, code: 'XMinioStorageFull' })
    expect(await upload(app)).toMatchObject({ status: 507, body: { error: { code: 'storage_full' } } })
    clock.advance(5)
    expect(await readReady()).toEqual([200, 'degraded', 'full'])
  })
})

test('aborting a download also aborts the request to the bucket', async () => {
  const server = await S3Server.start()
  const app = await startAppOnDisk(server.environment)
  const { body: file } = await upload(app, [filePart(randomBytes(2 * MIB)), purpose])
  server.fail('GetObject', { stallAfterBytes: MIB })
  const connection = await RawConnection.open(app)
  const path = `GET /v1/files/${file.id}/content`
  connection.send(toRequest(path, ['Host: x', `Authorization: Bearer ${app.key}`]))
  await connection.receives(/^HTTP\/1\.1 200 /)
  connection.reset()
  await expect.poll(() => server.calls.at(-1)?.isLeft).toBe(true)
})
