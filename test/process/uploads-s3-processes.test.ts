/** Tests that uploads to S3 resume from the acknowledged offset after a server is killed or stopped. */
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { eventually, makeFolder, startServer } from '../support/process.ts'
import { RawConnection, toRequest } from '../support/raw-connection.ts'
import { listResumable } from '../support/resumable-rows.ts'
import { S3Server } from '../support/s3-server.ts'
import { MIB } from '../support/s3-store.ts'
import { startS3rver } from '../support/s3rver.ts'
import {
  BODY_TYPE,
  type CreatedUpload,
  createUpload,
  finishUpload,
  patchUpload,
  readArtifact,
  readOffset,
  type Target,
  waitForState,
} from '../support/uploads.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

/** Creates a data directory; returns a function that starts a server with it and with the given bucket. */
async function startWorld(env: Readonly<Record<string, string>>) {
  const folder = await makeFolder()
  let key: string | undefined
  return async () => {
    const server = await startServer({ folder, env: { PARLEY_DATA_DIR: join(folder, 'data'), ...env } })
    key ??= server.key
    return { server, target: { url: server.url, key: key as string, fetch } }
  }
}

/** Sends a PATCH request with only part of its body. */
async function stall(
  { url, key }: Target,
  { location }: CreatedUpload,
  offset: number,
  bytes: Buffer,
): Promise<RawConnection> {
  const connection = await RawConnection.open({ url })
  const head = ['Host: x', `Authorization: Bearer ${key}`, 'Tus-Resumable: 1.0.0', `Upload-Offset: ${offset}`]
  const type = [`Content-Type: ${BODY_TYPE}`, 'Transfer-Encoding: chunked']
  connection.send(toRequest(`PATCH ${location}`, [...head, ...type]))
  connection.send(
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]),
  )
  return connection
}

test.each([
  ['s3rver', startS3rver],
  ['the scripted S3 server', async () => (await S3Server.start()).environment],
])('an upload resumes after the server is killed three times mid-upload (%s)', async (_what, startS3) => {
  const start = await startWorld(await startS3())
  const bytes = randomBytes(60 * MIB)
  const checksum = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  let { server, target } = await start()
  const begun = await createUpload(target, { size: bytes.length, metadata: { checksum } })
  let promised = 0
  for (const partBytes of [20 * MIB, 11 * MIB, 9 * MIB + 7]) {
    await stall(target, begun, promised, bytes.subarray(promised, promised + partBytes))
    const before = promised
    const hasProgressed = async () => (await readOffset(target, begun)) >= before + 8 * MIB
    expect(await eventually(hasProgressed, true)).toBe(true)
    promised = await readOffset(target, begun)
    await server.crash()
    ;({ server, target } = await start())
    const offset = await readOffset(target, begun)
    expect(offset).toBeGreaterThanOrEqual(promised)
    expect(offset).toBeLessThanOrEqual(before + partBytes)
    promised = offset
  }
  await finishUpload(target, begun, bytes)
  expect((await server.stop()).code).toBe(0)
})

test('the next server completes an upload if the server was killed while completing it', async () => {
  const s3 = await S3Server.start()
  const start = await startWorld(s3.environment)
  const bytes = randomBytes(10 * MIB)
  const first = await start()
  const begun = await createUpload(first.target, { size: bytes.length })
  s3.fail('CompleteMultipartUpload', 'hang', 1)
  const sending = patchUpload(first.target, begun, 0, bytes).catch(() => 'it died')
  await expect.poll(() => s3.count('CompleteMultipartUpload'), { timeout: 20_000 }).toBe(1)
  await first.server.crash()
  expect(await sending).toBe('it died')
  const second = await start()
  await waitForState(second.target, begun.id, 'ready')
  expect((await readArtifact(second.target, begun.id)).equals(bytes)).toBe(true)
  await expect.poll(() => listResumable(s3)).toEqual({ trailingParts: [], uploads: 0 })
})

test('a stopping server stores the received bytes, from which the upload resumes', async () => {
  const s3 = await S3Server.start()
  const start = await startWorld({ ...s3.environment, PARLEY_SHUTDOWN_SECONDS: '0.2' })
  const bytes = randomBytes(12 * MIB)
  const first = await start()
  const begun = await createUpload(first.target, { size: bytes.length })
  const connection = await stall(first.target, begun, 0, bytes.subarray(0, 11 * MIB))
  expect(await eventually(async () => (await readOffset(first.target, begun)) >= 8 * MIB, true)).toBe(true)
  const stopped = first.server.stop()
  await connection.receives(/^HTTP\/1\.1 503 .*"ok":false/s)
  expect((await stopped).code).toBe(0)
  const second = await start()
  expect(await readOffset(second.target, begun)).toBe(11 * MIB)
  await finishUpload(second.target, begun, bytes)
})

test('startup does not send a bucket request for each upload', async () => {
  const s3 = await S3Server.start()
  const start = await startWorld(s3.environment)
  const first = await start()
  for (let count = 0; count < 5; count++)
    await createUpload(first.target, { size: 10, body: Buffer.from('hello') })
  await first.server.crash()
  const before = s3.calls.length
  await start()
  const calls = s3.calls.slice(before).map(({ operation }) => operation)
  expect(calls).toEqual(['GetObject', 'ListMultipartUploads', 'GetObject'])
})
