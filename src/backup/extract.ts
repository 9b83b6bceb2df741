/** Extracts an archive into a folder and verifies it against the archive's manifest. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { z } from 'zod'
import { conversationMigrations, migrations } from '../db/migrate.ts'
import { StartupError } from '../lib/errors.ts'
import { countingExternalBytes } from '../lib/external-memory.ts'
import { syncFolder } from '../lib/files.ts'
import { makeFolder } from '../storage/folder.ts'
import { DATABASE, type EntryRecord, FORMAT, HEAD, Head, MANIFEST, Manifest, SEAL } from './manifest.ts'
import { writeDurably } from './output.ts'
import { damaged, type Entry, readTar } from './tar.ts'

/** Size limit for a metadata entry. A manifest needs about 150 bytes per file. */
const MAX_TEXT_BYTES = 512 * 1024 ** 2

const texts: readonly string[] = [HEAD, MANIFEST, SEAL]

/**
 * Extracts all entries and syncs them to disk.
 * @throws StartupError if the archive is from a newer version, is incomplete or was changed.
 */
export async function extract(archive: Readable, folder: string): Promise<Manifest> {
  const folders = ['files', 'artifacts', 'artifacts/growing'].map((name) => join(folder, name))
  for (const one of folders) await makeFolder(one)
  const records: EntryRecord[] = []
  const names = new Set<string>()
  let [manifest, isSealed] = [undefined as Manifest | undefined, false]
  for await (const entry of readTar(archive)) {
    if (isSealed) throw damaged('it contains data after its end')
    if ((records.length === 0) !== (entry.name === HEAD))
      throw damaged(`${HEAD} must be its first entry and occur only once`)
    if (manifest !== undefined && entry.name !== SEAL) throw damaged('it contains files after its manifest')
    if (names.has(entry.name)) throw damaged(`it contains ${entry.name} twice`)
    names.add(entry.name)
    const { text, record } = await take(entry, folder)
    if (entry.name === HEAD) assertKnown(parse(Head, entry.name, text))
    if (entry.name === MANIFEST) {
      manifest = parse(Manifest, entry.name, text)
      assertSame(records, manifest.entries)
    }
    if (entry.name === SEAL) {
      isSealed = text === `${records.at(-1)?.sha256}  ${MANIFEST}\n`
      if (!isSealed) throw damaged('its manifest was changed')
    }
    records.push(record)
  }
  if (manifest === undefined || !isSealed) throw damaged('it is truncated')
  for (const one of [...folders, folder]) await syncFolder(one)
  return manifest
}

async function take(entry: Entry, folder: string): Promise<{ text: string; record: EntryRecord }> {
  const { name, sizeBytes } = entry
  const hash = createHash('sha256')
  const isText = texts.includes(name)
  if (isText && sizeBytes > MAX_TEXT_BYTES) throw damaged(`${name} is too large`)
  const kept: Uint8Array[] = []
  async function* observe(): AsyncIterable<Uint8Array> {
    for await (const chunk of countingExternalBytes(entry.bytes)) {
      hash.update(chunk)
      if (isText) kept.push(chunk)
      yield chunk
    }
  }
  if (isText) for await (const _chunk of observe());
  else await writeDurably(join(folder, name), observe())
  const text = Buffer.concat(kept).toString()
  return { text, record: { name, size: sizeBytes, sha256: hash.digest('hex') } }
}

function parse<T extends z.ZodType>(shape: T, name: string, text: string): z.infer<T> {
  try {
    return shape.parse(JSON.parse(text))
  } catch {
    throw damaged(`its ${name} cannot be read`)
  }
}

function assertKnown({ format, schema, conversations_schema: stored, parley_version: version }: Head): void {
  const isKnown = stored === undefined || Object.hasOwn(conversationMigrations, stored)
  if (format <= FORMAT && Object.hasOwn(migrations, schema) && isKnown) return
  throw new StartupError(
    `The archive was written by a newer version of Parley (${version}, ${schema}); restore it with that version.`,
  )
}

function assertSame(found: readonly EntryRecord[], promised: readonly EntryRecord[]): void {
  for (const [at, { name, size, sha256 }] of promised.entries()) {
    const one = found[at]
    if (one === undefined) throw damaged(`${name} is missing`)
    if (one.name !== name || one.size !== size || one.sha256 !== sha256)
      throw damaged(`${one.name} was changed`)
  }
  if (found.length > promised.length)
    throw damaged(`it contains ${found[promised.length]?.name}, which is not in the manifest`)
  if (!found.some(({ name }) => name === DATABASE)) throw damaged('it contains no database')
}
