/** Tests that a file upload leaves no partial file behind when the server is killed or stopped. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { download, filePart, listStored, purpose, upload } from '../support/files.ts'
import { storePartialFile } from '../support/partial-file-upload.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const MIB = 1024 * 1024
const nothing = { kept: [], incoming: [] }

test('a server that was killed mid-upload removes the partial file before it listens again', async () => {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  const env = { PARLEY_DATA_DIR: dataDir }
  const first = await startServer({ folder, env })
  const key = first.key as string
  const bytes = Buffer.alloc(300_000, 'kept ')
  const before = await upload({ url: first.url, key, fetch }, [filePart(bytes), purpose])
  await storePartialFile({ url: first.url, key }, dataDir, MIB)
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

test('a stopping server returns an error to a slow upload and deletes its partial file', async () => {
  const folder = await makeFolder()
  const dataDir = join(folder, 'data')
  const server = await startServer({
    folder,
    env: { PARLEY_DATA_DIR: dataDir, PARLEY_SHUTDOWN_SECONDS: '0.3' },
  })
  const connection = await storePartialFile({ url: server.url, key: server.key as string }, dataDir, MIB)
  const stopped = server.stop()
  await connection.receives(/^HTTP\/1\.1 503 .*service_unavailable/s)
  expect((await stopped).code).toBe(0)
  expect(await listStored(dataDir)).toEqual(nothing)
})
