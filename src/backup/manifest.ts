/** What an archive says of itself: at its beginning what it is, at its end all that must be in it. */
import { z } from 'zod'
import { isBlobName } from '../storage/blobs.ts'
import type { ReferencedBlob } from './store.ts'

/** Counts up when an older version could not read the archive any more. */
export const FORMAT = 1

/** The entries beside the bytes, named as they lie in a data directory. */
export const HEAD = 'parley-backup.json'
export const DATABASE = 'parley.db'
export const SECRET = 'secret'
export const MANIFEST = 'manifest.json'
/** The last one: an archive without it lost its end. In the form of `sha256sum`. */
export const SEAL = 'manifest.sha256'

/** The first entry: enough to refuse an archive before all of it is read. */
export const Head = z.object({
  format: z.int(),
  parley_version: z.string(),
  /** The newest migration the database has had. */
  schema: z.string(),
  /** Unix seconds. */
  created_at: z.int(),
})
export type Head = z.infer<typeof Head>

const Count = z.int().nonnegative()

export const EntryRecord = z.object({ name: z.string(), size: Count, sha256: z.string() })
export type EntryRecord = z.infer<typeof EntryRecord>

export const Manifest = Head.extend({
  /** Whether the secret is an entry, came from the environment, or was never made. */
  secret: z.enum(['included', 'environment', 'none']),
  rows: z.record(z.string(), Count),
  /** In the order of the archive. */
  entries: z.array(EntryRecord),
  /** Bytes that rows speak of, but that were lost before. */
  lost: z.array(z.string()),
  /** Uploads under way that could not be read: they begin again. */
  unfinished: z.array(z.string()),
})
export type Manifest = z.infer<typeof Manifest>

/** Where bytes lie in the archive, and in a data directory. */
export function toEntryName({ store, name, uploadFence }: ReferencedBlob): string {
  return `${store}${uploadFence === undefined ? '' : '/growing'}/${name}`
}

/** Whether an archive of ours could pin an entry of that name; no other is ever written to disk. */
export function isEntryName(name: string): boolean {
  if ([HEAD, DATABASE, SECRET, MANIFEST, SEAL].includes(name)) return true
  const [, blob] = /^(?:files|artifacts|artifacts\/growing)\/([^/]+)$/.exec(name) ?? []
  return blob !== undefined && isBlobName(blob)
}
