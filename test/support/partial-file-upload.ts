/** Sends incomplete file uploads and measures how many of their bytes the server has stored. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { TestApp } from './app.ts'
import { BOUNDARY, FORM_TYPE, filePart, partHead } from './files.ts'
import { eventually } from './process.ts'
import { RawConnection, toRequest } from './raw-connection.ts'

const MIB = 1024 ** 2

/** Starts an upload that declares `declaredBytes` but sends only the first `sizeBytes` of the file. */
export async function sendPartialFile(
  app: Pick<TestApp, 'url' | 'key'>,
  sizeBytes: number,
  declaredBytes = 100 * MIB,
): Promise<RawConnection> {
  const connection = await RawConnection.open(app)
  const head = ['Host: x', `Authorization: Bearer ${app.key}`, `Content-Type: ${FORM_TYPE}`]
  connection.send(toRequest('POST /v1/files', [...head, `Content-Length: ${declaredBytes}`]))
  connection.send(Buffer.concat([partHead(filePart()), Buffer.alloc(sizeBytes, 'x')]))
  return connection
}

/** Like `sendPartialFile`, but also waits until the server has stored almost all of the sent bytes. */
export async function storePartialFile(
  app: Pick<TestApp, 'url' | 'key'>,
  dataDir: string,
  sizeBytes: number,
): Promise<RawConnection> {
  const connection = await sendPartialFile(app, sizeBytes, 10 * MIB)
  // The multipart parser buffers bytes that could be the start of a boundary.
  const hasArrived = async () => (await countIncomingBytes(dataDir)) > sizeBytes - BOUNDARY.length - 8
  expect(await eventually(hasArrived, true)).toBe(true)
  return connection
}

/** Returns the total size of the incomplete files in a data directory. */
export async function countIncomingBytes(dataDir: string): Promise<number> {
  const folder = join(dataDir, 'files', 'incoming')
  const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size)
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}
