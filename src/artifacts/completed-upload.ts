/** What a host is told of an upload whose last byte has come, and what it may do with it. */
import type { Readable } from 'node:stream'
import type { ArtifactKind } from './kinds.ts'
import { decodeMetadata } from './metadata.ts'
import type { UploadRow } from './store.ts'

/** A complete upload; what is optional is absent where nobody said it. */
export interface CompletedUpload {
  /** One for each upload, and the same in every delivery: who has seen it has seen the event. */
  readonly eventId: string
  readonly artifactId: string
  /** The public part of the parent key it belongs to. */
  readonly tenantId: string
  readonly kind: ArtifactKind
  readonly filename: string
  /** The media type as the client sent it; nobody has checked it. */
  readonly filetype?: string
  readonly name?: string
  /** The artifact it belongs to. */
  readonly relatedTo?: string
  readonly sizeBytes: number
  /** In hexadecimal; only where the client announced it, and then the bytes were compared with it. */
  readonly sha256?: string
  /** Every key of `Upload-Metadata`, decoded. */
  readonly metadata: Readonly<Record<string, string>>
  /** When the last byte was recorded, in Unix seconds. */
  readonly completedAt: number
}

/** What a host may do while it handles an upload; all of it ends with the delivery. */
export interface UploadHooks {
  /**
   * Keeps a JSON value with the artifact, in the place of the one before. It is kept even if the handler fails afterwards, and once the
   * promise resolves it survives a crash.
   * @throws ServiceError `invalid_value` at once, for what is no JSON, more than 64 KiB of it, or deeper than 64.
   */
  recordOutcome(value: unknown): Promise<void>
  /** The bytes as they were uploaded, as a stream; they are kept until the handler has returned. */
  open(): Promise<Readable>
  /** Aborts when nobody waits for the handler any more: its time is over, the artifact was removed, or the service stops. */
  readonly signal: AbortSignal
}

export function toCompletedUpload(row: UploadRow): CompletedUpload {
  return Object.freeze({
    eventId: row.blob,
    artifactId: row.id,
    tenantId: row.parent_key_id,
    kind: row.kind,
    filename: row.filename,
    ...(row.filetype === null ? {} : { filetype: row.filetype }),
    ...(row.name === null ? {} : { name: row.name }),
    ...(row.related_to === null ? {} : { relatedTo: row.related_to }),
    sizeBytes: row.received_bytes,
    ...(row.checksum === null ? {} : { sha256: row.checksum }),
    metadata: Object.freeze(decodeMetadata(row.metadata ?? '')),
    completedAt: row.finished_at ?? row.created_at,
  })
}
