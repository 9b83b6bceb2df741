/** Writes entries as a POSIX tar archive, as a stream. */
import { createHash } from 'node:crypto'
import { Header } from 'tar/header'
import { countingExternalBytes } from '../lib/external-memory.ts'
import type { EntryRecord } from './manifest.ts'

export const BLOCK_BYTES = 512

/** A file on its way into an archive. */
export interface Entry {
  readonly name: string
  readonly sizeBytes: number
  readonly bytes: AsyncIterable<Uint8Array>
}

/**
 * The bytes of the archive; `onEntry` is told of each entry when all of it has gone out, before the next one is asked for. `modifiedAt`
 * is in Unix seconds.
 * @throws Error for an entry that has fewer or more bytes than it says.
 */
export async function* renderTar(
  entries: AsyncIterable<Entry>,
  modifiedAt: number,
  onEntry: (record: EntryRecord) => void,
): AsyncGenerator<Uint8Array> {
  for await (const { name, sizeBytes, bytes } of entries) {
    yield renderHeader(name, sizeBytes, modifiedAt)
    const hash = createHash('sha256')
    let sentBytes = 0
    for await (const chunk of countingExternalBytes(bytes)) {
      sentBytes += chunk.length
      if (sentBytes > sizeBytes) break
      hash.update(chunk)
      yield chunk
    }
    if (sentBytes !== sizeBytes) throw new Error(`${name} does not have ${sizeBytes} bytes`)
    const behindBytes = sizeBytes % BLOCK_BYTES
    if (behindBytes > 0) yield Buffer.alloc(BLOCK_BYTES - behindBytes)
    onEntry({ name, size: sizeBytes, sha256: hash.digest('hex') })
  }
  yield Buffer.alloc(2 * BLOCK_BYTES)
}

function renderHeader(path: string, size: number, modifiedAt: number): Buffer {
  const mtime = new Date(modifiedAt * 1000)
  const header = new Header({ path, size, mtime, type: 'File', mode: 0o600, uid: 0, gid: 0 })
  const block = Buffer.alloc(BLOCK_BYTES)
  // Our names always fit. Sizes above 8 GiB are written as GNU tar does it, which every tar reads.
  header.encode(block)
  return block
}

/** An entry that is there already. */
export function toEntry(name: string, text: string | Buffer): Entry {
  const bytes = Buffer.from(text)
  return {
    name,
    sizeBytes: bytes.length,
    bytes: (async function* () {
      yield bytes
    })(),
  }
}
