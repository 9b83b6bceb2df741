/** Writes and reads POSIX tar archives as streams. The reader validates every size and name. */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { Header } from 'tar/header'
import { StartupError } from '../lib/errors.ts'
import { countingExternalBytes } from '../lib/external-memory.ts'
import { type EntryRecord, isEntryName } from './manifest.ts'

const BLOCK_BYTES = 512

export interface Entry {
  readonly name: string
  readonly sizeBytes: number
  readonly bytes: AsyncIterable<Uint8Array>
}

/**
 * Renders entries as a tar stream. Calls `onEntry` after each entry, before it requests the next one.
 * `modifiedAt` is in Unix seconds.
 * @throws Error if the size of an entry does not match its bytes.
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
  // Entry names always fit in a header. A size above 8 GiB is written in the GNU format, which common tar
  // programs can read.
  header.encode(block)
  return block
}

export function toEntry(name: string, text: string | Buffer): Entry {
  const bytes = Buffer.from(text)
  return { name, sizeBytes: bytes.length, bytes: Readable.from([bytes]) }
}

/**
 * Yields the archive's entries. Read all bytes of an entry before requesting the next one.
 * @throws StartupError if the archive is truncated or not from Parley.
 */
export async function* readTar(source: Readable): AsyncGenerator<Entry> {
  const reader = new ByteReader(unpack(source))
  try {
    for (;;) {
      const header = new Header(await reader.take(BLOCK_BYTES))
      if (header.nullBlock) break
      const { name, sizeBytes } = checkHeader(header)
      yield { name, sizeBytes, bytes: reader.stream(sizeBytes) }
      await reader.take((BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES)
    }
    // An archive ends with two blocks of zeros.
    const second = await reader.take(BLOCK_BYTES)
    if (second.some((byte) => byte !== 0) || !(await reader.hasZerosOnly()))
      throw damaged('it contains data after its end')
  } catch (error) {
    throw isUnpackError(error) ? damaged(error.message) : error
  } finally {
    source.destroy()
  }
}

export function damaged(what: string): StartupError {
  return new StartupError(`The archive is not usable: ${what}. Nothing was restored.`)
}

function checkHeader({ cksumValid, path = '', size = 0, type }: Header): Omit<Entry, 'bytes'> {
  if (!cksumValid) throw damaged('it is not a tar archive, or it was changed')
  if ((type !== 'File' && type !== 'OldFile') || !isEntryName(path))
    throw damaged(`it contains ${JSON.stringify(path)}, which is not part of a Parley backup`)
  return { name: path, sizeBytes: size }
}

const packings = [
  { magic: Buffer.from([0x1f, 0x8b]), createUnpacker: createGunzip },
  { magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), createUnpacker: createZstdDecompress },
]

/** Detects the compression from the first bytes, because the file name may be wrong. */
async function* unpack(source: Readable): AsyncGenerator<Buffer> {
  const chunks: AsyncIterator<Buffer> = source[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  while (head.length < BLOCK_BYTES) {
    const { value, done } = await chunks.next()
    if (done === true) break
    head = Buffer.concat([head, value])
  }
  const all = Readable.from(join(head, chunks))
  const packing = packings.find(({ magic }) => head.subarray(0, magic.length).equals(magic))
  if (packing === undefined) return yield* all
  const unpacker = packing.createUnpacker()
  all.on('error', (error) => unpacker.destroy(error))
  yield* all.pipe(unpacker)
}

async function* join(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
}

function isUnpackError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && /^(Z_|ZSTD_)/.test(String(error.code))
}

class ByteReader {
  private readonly chunks: AsyncIterator<Buffer>
  private rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.chunks = chunks[Symbol.asyncIterator]()
  }

  async take(sizeBytes: number): Promise<Buffer> {
    const pieces: Buffer[] = []
    for await (const piece of this.stream(sizeBytes)) pieces.push(piece)
    return Buffer.concat(pieces)
  }

  async *stream(sizeBytes: number): AsyncGenerator<Buffer> {
    for (let left = sizeBytes; left > 0; ) {
      if (this.rest.length === 0 && !(await this.fill())) throw damaged('it is truncated')
      const piece = this.rest.subarray(0, left)
      this.rest = this.rest.subarray(piece.length)
      left -= piece.length
      yield piece
    }
  }

  /** Allows trailing zeros, because other programs pad archives. */
  async hasZerosOnly(): Promise<boolean> {
    do if (this.rest.some((byte) => byte !== 0)) return false
    while (await this.fill())
    return true
  }

  private async fill(): Promise<boolean> {
    const { value, done } = await this.chunks.next()
    if (done === true) return false
    this.rest = value
    return true
  }
}
