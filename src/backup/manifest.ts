/**
 * Defines an archive's metadata: the head, which identifies the archive, and the manifest, which lists its
 * entries.
 */
import { z } from 'zod'
import { isBlobName } from '../storage/blobs.ts'
import type { ReferencedBlob } from './store.ts'

/** Increase this when older versions cannot read new archives. */
export const FORMAT = 2
/** The format of archives without conversations, which earlier versions can read too. */
export const FORMAT_WITHOUT_CONVERSATIONS = 1

/** Names of the entries that are not blobs. */
export const HEAD = 'parley-backup.json'
export const DATABASE = 'parley.db'
export const CONVERSATIONS = 'conversations.db'
export const SECRET = 'secret'
export const MANIFEST = 'manifest.json'
/** The last entry: the manifest's checksum in `sha256sum` format. An archive without it is truncated. */
export const SEAL = 'manifest.sha256'

/** The first entry, which contains the archive's format and version. */
export const Head = z.object({
  format: z.int(),
  parley_version: z.string(),
  schema: z.string(),
  /** The newest migration of the stored conversations; absent if the archive does not contain them. */
  conversations_schema: z.string().optional(),
  created_at: z.int(),
})
export type Head = z.infer<typeof Head>

const Count = z.int().nonnegative()

export const EntryRecord = z.object({ name: z.string(), size: Count, sha256: z.string() })
export type EntryRecord = z.infer<typeof EntryRecord>

export const Manifest = Head.extend({
  /** Whether the secret is in the archive, was set in the environment, or did not exist. */
  secret: z.enum(['included', 'environment', 'none']),
  /** Whether the stored conversations are in the archive, were omitted, or did not exist. */
  conversations: z.enum(['included', 'omitted', 'none']).default('none'),
  rows: z.record(z.string(), Count),
  entries: z.array(EntryRecord),
  lost: z.array(z.string()),
  /** Active uploads that the archive does not contain; clients must start them again. */
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
  if ([HEAD, DATABASE, CONVERSATIONS, SECRET, MANIFEST, SEAL].includes(name)) return true
  const [, blob] = /^(?:files|artifacts|artifacts\/growing)\/([^/]+)$/.exec(name) ?? []
  return blob !== undefined && isBlobName(blob)
}
