/** Tests files stored in an S3 bucket, including uploads interrupted by a kill or a shutdown. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { createFileSweeper } from '../../src/files/files.ts'
import { startAppOnDisk } from '../support/app.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { download, field, filePart, purpose, upload } from '../support/files.ts'
import { sendPartialFile } from '../support/partial-file-upload.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { S3Server } from '../support/s3-server.ts'
import { MIB } from '../support/s3-store.ts'
import { startS3rver } from '../support/s3rver.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const HOUR = 3600

describe('with s3rver as the object store', () => {
  test.each([
    ['small', 1_000],
    ['large', 20 * MIB + 1],
  ])('a %s file can be downloaded, in full or by range, until it is deleted', async (_size, sizeBytes) => {
    const app = await startAppOnDisk(await startS3rver())
    const bytes = randomBytes(sizeBytes)
    const { body: file } = await upload(app, [filePart(bytes), purpose])
    expect(file.bytes).toBe(sizeBytes)
    const whole = await download(app, file.id)
    expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true)
    const part = await download(app, file.id, { headers: { Range: `bytes=${sizeBytes - 500}-` } })
    expect([part.status, part.headers.get('content-range')]).toEqual([
      206,
      `bytes ${sizeBytes - 500}-${sizeBytes - 1}/${sizeBytes}`,
    ])
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(-500))).toBe(true)
    const head = await download(app, file.id, { method: 'HEAD' })
    expect(head.headers.get('content-length')).toBe(String(sizeBytes))
    expect((await app.call('DELETE', `/v1/files/${file.id}`)).status).toBe(200)
    expect((await download(app, file.id)).status).toBe(404)
  })

  test('an empty file can be stored and downloaded', async () => {
    const app = await startAppOnDisk(await startS3rver())
    const { body: file } = await upload(app, [filePart(''), purpose])
    const answer = await download(app, file.id)
    expect([answer.status, await answer.text()]).toEqual([200, ''])
  })

  test('the sweeper deletes only expired files', async () => {
    const clock = createFakeClock(Math.floor(Date.now() / 1000))
    const app = await startAppOnDisk(await startS3rver(), { clock })
    const sweeper = createFileSweeper(app.service.deps)
    const { body: stays } = await upload(app)
    const expiry = [
      field('expires_after[anchor]', 'created_at'),
      field('expires_after[seconds]', String(HOUR)),
    ]
    await upload(app, [filePart(), purpose, ...expiry])
    const countBlobs = async () => {
      let count = 0
      for await (const _blob of app.service.deps.fileBlobs.list()) count += 1
      return count
    }
    expect(await countBlobs()).toBe(2)
    clock.advance(2 * HOUR)
    await sweeper.run()
    expect(await countBlobs()).toBe(1)
    expect(await (await download(app, stays.id)).text()).toBe('hello')
  })
})

describe('an interrupted upload', () => {
  test('is removed by the next start after the server is killed', async () => {
    const s3 = await S3Server.start()
    const folder = await makeFolder()
    const first = await startServer({ folder, env: s3.environment })
    const key = first.key as string
    const bytes = randomBytes(9 * MIB)
    const { body: file } = await upload({ url: first.url, key, fetch }, [filePart(bytes), purpose])
    await sendPartialFile({ url: first.url, key }, 20 * MIB)
    await expect.poll(() => s3.uploads.size, { timeout: 10_000 }).toBe(1)
    first.kill('SIGKILL')
    await first.ended
    const second = await startServer({ folder, env: s3.environment })
    expect(s3.uploads.size).toBe(0)
    expect((await callServer(second.url, 'GET', '/v1/files', key)).body.data).toEqual([file])
    const content = await download({ url: second.url, key, fetch }, file.id)
    expect(Buffer.from(await content.arrayBuffer()).equals(bytes)).toBe(true)
  })

  test('receives a 503 response and leaves nothing in the bucket when the server stops', async () => {
    const s3 = await S3Server.start()
    const env = { ...s3.environment, PARLEY_SHUTDOWN_SECONDS: '0.3' }
    const server = await startServer({ folder: await makeFolder(), env })
    const connection = await sendPartialFile({ url: server.url, key: server.key as string }, 20 * MIB)
    await expect.poll(() => s3.uploads.size, { timeout: 10_000 }).toBe(1)
    const stopped = server.stop()
    await connection.receives(/^HTTP\/1\.1 503 .*service_unavailable/s)
    expect((await stopped).code).toBe(0)
    expect(s3.uploads.size).toBe(0)
  })
})
