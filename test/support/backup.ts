/** Creates, restores, reads and forges backups in the test's process. */
import { createReadStream } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { pino } from 'pino'
import { type BackupOptions, createBackup } from '../../src/backup/backup.ts'
import type { BackupReport } from '../../src/backup/manifest.ts'
import { toFile } from '../../src/backup/output.ts'
import { type RestoreReport, restoreBackup } from '../../src/backup/restore.ts'
import { type Entry, readTar, renderTar, toEntry } from '../../src/backup/tar.ts'
import { parseConfig } from '../../src/config/parse.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { testEnvironment } from './app.ts'

type Environment = Readonly<Record<string, string>>

async function toDeps(dataDir: string, env: Environment) {
  const { config } = await parseConfig({ ...testEnvironment, PARLEY_DATA_DIR: dataDir, ...env })
  return { config, clock: systemClock, log: pino({ level: 'silent' }) }
}

export async function backUp(
  dataDir: string,
  archive: string,
  env: Environment = {},
  options: BackupOptions = {},
): Promise<BackupReport> {
  return createBackup(await toDeps(dataDir, env), toFile(archive), options)
}

export async function restoreArchive(
  archive: string | Readable,
  dataDir: string,
  env: Environment = {},
): Promise<RestoreReport> {
  const source = typeof archive === 'string' ? createReadStream(archive) : archive
  return restoreBackup(await toDeps(dataDir, env), source)
}

/** Reads an archive, and decompresses it if it is compressed with gzip or Zstandard. */
export async function readUnpacked(archive: string): Promise<Buffer> {
  const bytes = await readFile(archive)
  if (bytes.readUInt16BE() === 0x1f8b) return gunzipSync(bytes)
  return bytes.readUInt32LE() === 0xfd2fb528 ? zstdDecompressSync(bytes) : bytes
}

/** Reads an archive; returns its entries' contents by name, in order. */
export async function readEntries(archive: string): Promise<Map<string, Buffer>> {
  const entries = new Map<string, Buffer>()
  for await (const { name, bytes } of readTar(createReadStream(archive)))
    entries.set(name, await buffer(bytes))
  return entries
}

/** Writes an archive with the given entries, which can be invalid. */
export async function writeArchive(
  path: string,
  entries: readonly (readonly [string, Buffer])[],
): Promise<void> {
  async function* list(): AsyncIterable<Entry> {
    for (const [name, bytes] of entries) yield toEntry(name, bytes)
  }
  const bytes = Readable.from(renderTar(list(), 0, () => {}))
  await writeFile(path, Buffer.concat(await bytes.toArray()))
}
