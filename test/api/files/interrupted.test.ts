/**
 * Tests file uploads from clients that disconnect or stall, and uploads that are rejected before all bytes
 * arrive.
 */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import {
  FORM_TYPE,
  filePart,
  formEnd,
  listStored,
  partHead,
  purpose,
  toForm,
  upload,
} from '../../support/files.ts'
import { countIncomingBytes, storePartialFile } from '../../support/partial-file-upload.ts'
import { eventually, makeFolder } from '../../support/process.ts'
import { RawConnection, toRequest } from '../../support/raw-connection.ts'

const MIB = 1024 * 1024
const emptyStore = { kept: [], incoming: [] }

async function startWithDataDir(
  env: Readonly<Record<string, string>> = {},
): Promise<{ app: TestApp; dataDir: string }> {
  const dataDir = join(await makeFolder(), 'data')
  return { app: await startApp({ ...env, PARLEY_DATA_DIR: dataDir }), dataDir }
}

const isEmpty = (dataDir: string) => async () =>
  JSON.stringify(await listStored(dataDir)) === JSON.stringify(emptyStore)

describe('a client that disconnects mid-upload', () => {
  test.each([
    ['by resetting the connection', (connection: RawConnection) => connection.reset()],
    ['by half-closing the connection', (connection: RawConnection) => connection.endSending()],
  ])('does not leave any bytes in the store (%s)', async (_how, disconnect) => {
    const { app, dataDir } = await startWithDataDir()
    const connection = await storePartialFile(app, dataDir, MIB)
    disconnect(connection)
    expect(await eventually(isEmpty(dataDir), true)).toBe(true)
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
    expect((await upload(app)).status).toBe(200)
  })

  test('receives 400 or no response if it half-closes the connection', async () => {
    const { app, dataDir } = await startWithDataDir()
    const connection = await storePartialFile(app, dataDir, 1000)
    connection.endSending()
    expect(await connection.ends()).toMatch(/^(HTTP\/1\.1 400 |$)/)
  })
})

describe('a slow client', () => {
  test('receives 408 when it stalls mid-upload, and no bytes remain in the store', async () => {
    const { app, dataDir } = await startWithDataDir({ PARLEY_BODY_IDLE_SECONDS: '0.3' })
    const connection = await storePartialFile(app, dataDir, 1000)
    expect(await connection.receives(/^HTTP\/1\.1 408 .*request_timeout/s)).toContain('Connection: close')
    expect(await listStored(dataDir)).toEqual(emptyStore)
  })

  test('may take longer to send a file than the time limit for JSON bodies', async () => {
    const { app, dataDir } = await startWithDataDir({ PARLEY_BODY_SECONDS: '0.001' })
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
    expect(await eventually(async () => (await countIncomingBytes(dataDir)) > 0, true)).toBe(true)
    connection.send(form.subarray(600))
    await connection.receives(/^HTTP\/1\.1 200 .*"bytes":1000/s)
  })

  // Without an empty line after the part's headers, the parser reads all further bytes as headers.
  const endless = Buffer.concat([
    partHead(purpose).subarray(0, -2),
    partHead(filePart()),
    Buffer.alloc(MIB, 'x'),
  ])
  test.each([
    ['receives 408 when more bytes are announced', 10 * MIB, 408, 'request_timeout'],
    ['receives 400 when no more bytes are announced', endless.length, 400, 'invalid_value'],
  ])('that stalls inside the headers of a part %s', async (_how, lengthBytes, status, code) => {
    const { app, dataDir } = await startWithDataDir({ PARLEY_BODY_IDLE_SECONDS: '0.3' })
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

describe('a file upload', () => {
  test('is rejected immediately if its Content-Length is too large', async () => {
    const { app, dataDir } = await startWithDataDir({ PARLEY_MAX_FILE_BYTES: '1000' })
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
    expect(await listStored(dataDir)).toEqual(emptyStore)
  })

  test('without an API key is rejected before 100 Continue', async () => {
    const { app } = await startWithDataDir()
    const connection = await RawConnection.open(app)
    const head = ['Host: x', 'Expect: 100-continue', `Content-Type: ${FORM_TYPE}`, 'Content-Length: 1000']
    connection.send(toRequest('POST /v1/files', head))
    expect(await connection.receives(/^HTTP\/1\.1 401 .*missing_api_key/s)).not.toContain('100 Continue')
  })

  test('is rejected for an invalid field before all bytes have arrived', async () => {
    const { app, dataDir } = await startWithDataDir()
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
