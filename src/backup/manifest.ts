/** Defines the metadata of an archive: the head identifies it, and the manifest lists what it must contain. */
import { z } from 'zod'
import { isBlobName } from '../storage/blobs.ts'
import type { ReferencedBlob } from './store.ts'

/** Increase this when older versions can no longer read the archive. */
export const FORMAT = 1

/** The entries other than blobs, under the names that they have in a data directory. */
export const HEAD = 'parley-backup.json'
export const DATABASE = 'parley.db'
export const SECRET = 'secret'
export const MANIFEST = 'manifest.json'
/** The last entry, in `sha256sum` format. An archive without it is truncated. */
export const SEAL = 'manifest.sha256'

/** The first entry, which identifies an archive before all of it has been read. */
export const Head = z.object({
  format: z.int(),
  parley_version: z.string(),
  schema: z.string(),
  created_at: z.int(),
})
export type Head = z.infer<typeof Head>

const Count = z.int().nonnegative()

export const EntryRecord = z.object({ name: z.string(), size: Count, sha256: z.string() })
export type EntryRecord = z.infer<typeof EntryRecord>

export const Manifest = Head.extend({
  /** States whether the secret is in the archive, came from the environment, or was never created. */
  secret: z.enum(['included', 'environment', 'none']),
  rows: z.record(z.string(), Count),
  entries: z.array(EntryRecord),
  lost: z.array(z.string()),
  /** Uploads that could not be read; clients must start them again. */
  unfinished: z.array(z.string()),
})
export type Manifest = z.infer<typeof Manifest>

export interface BackupReport extends Omit<Manifest, 'entries' | 'format'> {
  readonly blobs: number
  readonly bytes: number
}

export function toReport({ entries, format: _format, ...rest }: Manifest): BackupReport {
  const blobs = entries.filter(({ name }) => name.includes('/'))
  return { ...rest, blobs: blobs.length, bytes: blobs.reduce((sum, { size }) => sum + size, 0) }
}

export function toEntryName({ store, name, uploadFence }: ReferencedBlob): string {
  return `${store}${uploadFence === undefined ? '' : '/growing'}/${name}`
}

export function isEntryName(name: string): boolean {
  if ([HEAD, DATABASE, SECRET, MANIFEST, SEAL].includes(name)) return true
  const [, blob] = /^(?:files|artifacts|artifacts\/growing)\/([^/]+)$/.exec(name) ?? []
  return blob !== undefined && isBlobName(blob)
}
