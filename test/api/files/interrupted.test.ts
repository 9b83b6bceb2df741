/** Uploads that do not come to their end: whoever ends them, nothing of them stays behind. */
import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import {
  BOUNDARY,
  download,
  FORM_TYPE,
  filePart,
  formEnd,
  listStored,
  partHead,
  purpose,
  toForm,
  upload,
} from '../../support/files.ts'
import { callServer, eventually, makeFolder, startServer } from '../../support/process.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'

// Some of these start processes, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const MIB = 1024 * 1024
const nothing = { kept: [], incoming: [] }

/** Sends the head of an upload and the beginning of its file, and waits until that lies in the store. */
async function beginUpload(
  app: { url: string; key: string },
  dataDir: string,
  sizeBytes: number,
): Promise<RawConnection> {
  const connection = await RawConnection.open(app)
  connection.send(
    toRequest('POST /v1/files', [
      'Host: x',
      `Authorization: Bearer ${app.key}`,
      `Content-Type: ${FORM_TYPE}`,
      `Content-Length: ${10 * MIB}`,
    ]),
  )
  connection.send(Buffer.concat([partHead(filePart()), Buffer.alloc(sizeBytes, 'x')]))
  // What could still be the beginning of a boundary is held back.
  const hasArrived = async () => (await incomingBytes(dataDir)) > sizeBytes - BOUNDARY.length - 8
  expect(await eventually(hasArrived, true)).toBe(true)
  return connection
}

async function incomingBytes(dataDir: string): Promise<number> {
  const folder = join(dataDir, 'files', 'incoming')
  const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size)
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

async function startKept(
  env: Readonly<Record<string, string>> = {},
): Promise<{ app: TestApp; dataDir: string }> {
  const dataDir = join(await makeFolder(), 'data')
  return { app: await startApp({ ...env, PARLEY_DATA_DIR: dataDir }), dataDir }
}

const isEmpty = (dataDir: string) => async () =>
  JSON.stringify(await listStored(dataDir)) === JSON.stringify(nothing)

describe('a client that goes away in the middle', () => {
  test.each([
    ['by a reset', (connection: RawConnection) => connection.reset()],
    ['by ending its side', (connection: RawConnection) => connection.endSending()],
  ])('leaves nothing behind (%s)', async (_how, leave) => {
    const { app, dataDir } = await startKept()
    const connection = await beginUpload(app, dataDir, MIB)
    leave(connection)
    expect(await eventually(isEmpty(dataDir), true)).toBe(true)
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
    expect((await upload(app)).status).toBe(200)
  })

  test('is told so when it still listens', async () => {
    const { app, dataDir } = await startKept()
    const connection = await beginUpload(app, dataDir, 1000)
    connection.endSending()
    expect(await connection.ends()).toMatch(/^(HTTP\/1\.1 400 |$)/)
  })
})

describe('a client that falls silent in the middle', () => {
  test('is told so and leaves nothing behind', async () => {
    const { app, dataDir } = await startKept({ PARLEY_BODY_IDLE_SECONDS: '0.3' })
    const connection = await beginUpload(app, dataDir, 1000)
    expect(await connection.receives(/^HTTP\/1\.1 408 .*request_timeout/s)).toContain('Connection: close')
    expect(await listStored(dataDir)).toEqual(nothing)
  })

  test('may take longer over a file than a JSON body may take', async () => {
    const { app, dataDir } = await startKept({ PARLEY_BODY_SECONDS: '0.001' })
    const form = toForm([filePart(Buffer.alloc(1000, 'x')), purpose])
    const connection = await RawConnection.open(app)
    connection.send(
      toRequest('POST /v1/files', [
        'Host: x',
        `Authorization: Bearer ${app.key}`,
        `Content-Type: ${FORM_TYPE}`,
        `Content-Length: ${form.length}`,
      ]),
    )
    connection.send(form.subarray(0, 600))
    expect(await eventually(async () => (await incomingBytes(dataDir)) > 0, true)).toBe(true)
    connection.send(form.subarray(600))
    await connection.receives(/^HTTP\/1\.1 200 .*"bytes":1000/s)
  })

  // The boundary stands where the empty line should be: the parser takes all that follows for headers.
  const endless = Buffer.concat([
    partHead(purpose).subarray(0, -2),
    partHead(filePart()),
    Buffer.alloc(MIB, 'x'),
  ])
  test.each([
    ['with more announced is told that it is late', 10 * MIB, 408, 'request_timeout'],
    ['with nothing more announced is told that this is no form', endless.length, 400, 'invalid_value'],
  ])('in a part without an end to its headers, %s', async (_how, lengthBytes, status, code) => {
    const { app, dataDir } = await startKept({ PARLEY_BODY_IDLE_SECONDS: '0.3' })
    const connection = await RawConnection.open(app)
    connection.send(
      toRequest('POST /v1/files', [
        'Host: x',
        `Authorization: Bearer ${app.key}`,
        `Content-Type: ${FORM_TYPE}`,
        `Content-Length: ${lengthBytes}`,
      ]),
    )
    connection.send(endless)
    await connection.receives(new RegExp(`^HTTP/1\\.1 ${status} .*"${code}"`, 's'))
    expect(await eventually(isEmpty(dataDir), true)).toBe(true)
  })
})

describe('a file that is refused before it has come', () => {
  test('for its announced length gets its answer at once', async () => {
    const { app, dataDir } = await startKept({ PARLEY_MAX_FILE_BYTES: '1000' })
    const connection = await RawConnection.open(app)
    connection.send(
      toRequest('POST /v1/files', [
        'Host: x',
        `Authorization: Bearer ${app.key}`,
        `Content-Type: ${FORM_TYPE}`,
        `Content-Length: ${10 * MIB}`,
      ]),
    )
    await connection.receives(/^HTTP\/1\.1 413 .*too_large/s)
    expect(await listStored(dataDir)).toEqual(nothing)
  })

  test('is not asked for when the caller is unknown', async () => {
    const { app } = await startKept()
    const connection = await RawConnection.open(app)
    const head = ['Host: x', 'Expect: 100-continue', `Content-Type: ${FORM_TYPE}`, 'Content-Length: 1000']
    connection.send(toRequest('POST /v1/files', head))
    expect(await connection.receives(/^HTTP\/1\.1 401 .*missing_api_key/s)).not.toContain('100 Continue')
  })

  test('for a field before it gets its answer while it is still coming', async () => {
    const { app, dataDir } = await startKept()
    const connection = await RawConnection.open(app)
    connection.send(
      toRequest('POST /v1/files', [
        'Host: x',
        `Authorization: Bearer ${app.key}`,
        `Content-Type: ${FORM_TYPE}`,
        `Content-Length: ${10 * MIB}`,
      ]),
    )
    connection.send(toForm([{ ...purpose, body: 'x'.repeat(5000) }]).subarray(0, -formEnd.length))
    connection.send(Buffer.concat([partHead(filePart()), Buffer.alloc(MIB, 'x')]))
    await connection.receives(/^HTTP\/1\.1 400 .*"param":"purpose"/s)
    expect(await eventually(isEmpty(dataDir), true)).toBe(true)
  })
})

test('a server that is killed in the middle has cleared away by the time it listens again', async () => {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  const env = { PARLEY_DATA_DIR: dataDir }
  const first = await startServer({ folder, env })
  const key = first.key as string
  const bytes = Buffer.alloc(300_000, 'kept ')
  const before = await upload({ url: first.url, key, fetch }, [filePart(bytes), purpose])
  await beginUpload({ url: first.url, key }, dataDir, MIB)
  first.kill('SIGKILL')
  await first.ended
  expect((await listStored(dataDir)).incoming).toHaveLength(1)

  const second = await startServer({ folder, env })
  expect((await listStored(dataDir)).incoming).toEqual([])
  expect((await callServer(second.url, 'GET', '/v1/files', key)).body.data).toEqual([before.body])
  const content = await download({ url: second.url, key, fetch }, before.body.id)
  const hashOf = (data: Buffer) => createHash('sha256').update(data).digest('hex')
  expect(hashOf(Buffer.from(await content.arrayBuffer()))).toBe(hashOf(bytes))
})

test('a server that stops tells an upload that lasts too long, and leaves nothing of it', async () => {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  const server = await startServer({
    folder,
    env: { PARLEY_DATA_DIR: dataDir, PARLEY_SHUTDOWN_SECONDS: '0.3' },
  })
  const connection = await beginUpload({ url: server.url, key: server.key as string }, dataDir, MIB)
  const stopped = server.stop()
  await connection.receives(/^HTTP\/1\.1 503 .*service_unavailable/s)
  expect((await stopped).code).toBe(0)
  expect(await listStored(dataDir)).toEqual(nothing)
})
