/** Writes an archive to a file or to standard output. */
import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip, createZstdCompress } from 'node:zlib'
import { StartupError } from '../lib/errors.ts'
import { syncFolder } from '../lib/files.ts'
import { ignoreMissing } from '../storage/folder.ts'

export interface Output {
  /** Writes the archive. A file is synced to disk before this resolves. */
  write(bytes: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<void>
}

export function toStream(stream: Writable): Output {
  return {
    write: (bytes, signal) => pipeline(Readable.from(bytes), stream, { end: false, ...toOptions(signal) }),
  }
}

/**
 * Writes to `<name>.part`, and renames that file when it is complete. The extension determines the
 * compression. `write` throws a StartupError if the file already exists.
 */
export function toFile(name: string): Output {
  const path = resolve(name)
  const part = `${path}.part`
  return {
    async write(bytes, signal) {
      if ((await stat(path).catch(ignoreMissing)) !== undefined)
        throw new StartupError(`The file ${name} already exists; choose another name.`)
      await rm(part, { force: true })
      try {
        await writeDurably(part, bytes, findPacker(path), signal)
        await rename(part, path)
        await syncFolder(dirname(path))
      } catch (error) {
        await rm(part, { force: true })
        throw error
      }
    },
  }
}

type Packer = ReturnType<typeof createGzip>

function findPacker(path: string): Packer | undefined {
  if (/\.t?gz$/.test(path)) return createGzip()
  return /\.(zst|tzst)$/.test(path) ? createZstdCompress() : undefined
}

export async function writeDurably(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  packer?: Packer,
  signal?: AbortSignal,
): Promise<void> {
  const target = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true })
  const streams = packer === undefined ? [target] : [packer, target]
  await pipeline([Readable.from(bytes), ...streams], toOptions(signal))
}

function toOptions(signal: AbortSignal | undefined) {
  return signal === undefined ? {} : { signal }
}
