/** Tests that the server stores and serves a 128 MiB file without loading it into memory. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { FORM_TYPE, filePart, formEnd, partHead, purpose, toForm, upload } from '../support/files.ts'
import { makeFolder, type RunningServer, startServer } from '../support/process.ts'
import { startS3rver } from '../support/s3rver.ts'

const MIB = 1024 * 1024
const SIZE = 128 * MIB
const MAX_EXTRA_BYTES = 64 * MIB

/** Returns 1 MiB of data that differs for each index, to detect misplaced blocks. */
function block(index: number): Buffer {
  const bytes = Buffer.alloc(MIB, createHash('sha512').update(String(index)).digest())
  bytes.writeUInt32BE(index, 0)
  return bytes
}

function toBody(hash: ReturnType<typeof createHash>): ReadableStream {
  let index = -1
  return new ReadableStream({
    pull(controller) {
      index += 1
      if (index === 0) {
        controller.enqueue(toForm([purpose]).subarray(0, -formEnd.length))
        controller.enqueue(partHead(filePart()))
      } else if (index <= SIZE / MIB) {
        const bytes = block(index)
        hash.update(bytes)
        controller.enqueue(bytes)
      } else {
        controller.enqueue(Buffer.from(`\r\n${formEnd}`))
        controller.close()
      }
    },
  })
}

/** Returns the server's current resident memory and its peak since the previous call, in bytes. */
async function readMemory({ pid }: RunningServer): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024
  await writeFile(`/proc/${pid}/clear_refs`, '5')
  return { now: of('VmRSS'), peak: of('VmHWM') }
}

const stores: [what: string, start: () => Promise<Record<string, string>>][] = [
  ['the data directory', async () => ({})],
  ['an S3 bucket', startS3rver],
]

test.skipIf(!existsSync('/proc/self/clear_refs')).each(stores)(
  'storing and serving a 128 MiB file in %s uses less than 64 MiB of additional memory',
  { timeout: 120_000 },
  async (_what, startStore) => {
    const folder = await makeFolder()
    const server = await startServer({ folder, env: await startStore() })
    const key = server.key as string
    const headers = { Authorization: `Bearer ${key}` }
    await upload({ url: server.url, key, fetch })
    const { now: before } = await readMemory(server)

    const sent = createHash('sha256')
    const init = { method: 'POST', headers: { ...headers, 'Content-Type': FORM_TYPE }, duplex: 'half' }
    const uploaded = await fetch(`${server.url}/v1/files`, { ...init, body: toBody(sent) } as RequestInit)
    const file = await uploaded.json()
    expect(file.bytes).toBe(SIZE)
    expect((await readMemory(server)).peak - before).toBeLessThan(MAX_EXTRA_BYTES)

    const received = createHash('sha256')
    const downloaded = await fetch(`${server.url}/v1/files/${file.id}/content`, { headers })
    for await (const chunk of downloaded.body as unknown as AsyncIterable<Uint8Array>) received.update(chunk)
    expect(received.digest('hex')).toBe(sent.digest('hex'))
    expect((await readMemory(server)).peak - before).toBeLessThan(MAX_EXTRA_BYTES)
  },
)
