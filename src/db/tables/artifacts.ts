/** Defines the tables of the artifacts module: artifacts, why they no longer exist, and their jobs. */
import type { Generated } from 'kysely'

/**
 * An artifact in any state: a reserved id, an active upload or its result. Its bytes are in the blob store.
 */
export interface ArtifactTable {
  /** A lowercase UUID from the client or the server, unique across all tenants. */
  id: string
  parent_key_id: string
  /** The random last segment of the upload's URL; null for a reserved id. */
  segment: string | null
  state: 'unknown' | 'uploading' | 'processing' | 'ready'
  /** `attachment` for a visitor's upload. */
  kind: 'video' | 'project' | 'captions' | 'thumbnail' | 'attachment' | null
  /** The agent and the visitor that an `attachment` belongs to; null for all other artifacts. */
  agent_id: string | null
  visitor_id: string | null
  /** Id of the artifact that this one belongs to; it may not exist. */
  related_to: string | null
  name: string | null
  filename: string | null
  /** The media type that the client sent; it may be wrong. */
  filetype: string | null
  /** SHA-256 of the whole upload in hexadecimal, as sent by the client. */
  checksum: string | null
  /** SHA-256 of the whole upload in hexadecimal, once the server has verified or computed it. */
  sha256: string | null
  metadata: string | null
  size_bytes: number | null
  /** Number of durable bytes; a client may resume from this offset. */
  received_bytes: Generated<number>
  /** Number of bytes that the lease holder has received, durable or not; meaningless without a lease. */
  arrived_bytes: Generated<number>
  /** Number of bytes charged to the tenant's quota. */
  kept_bytes: Generated<number>
  /**
   * UUID of the blob with the uploaded bytes, which is in the resumable store until the upload is complete;
   * null for a reserved id.
   */
  blob: string | null
  /** Increases with each lease. A write fails if it was made under an earlier lease. */
  fence: Generated<number>
  lease_until: number | null
  /** The served blob, which may be the original; null until `ready`. */
  served_blob: string | null
  served_bytes: number | null
  /**
   * Expected media type of the served blob; `sniffed_type` is the detected one. Both are null until `ready`.
   */
  media_type: string | null
  sniffed_type: string | null
  poster_blob: string | null
  poster_bytes: number | null
  progress_permille: Generated<number>
  conversion_result: 'converted' | 'original' | null
  conversion_reason: string | null
  acknowledged: Generated<number>
  outcome: string | null
  created_at: number
  finished_at: number | null
  /**
   * Unix seconds at which an unfinished upload, a reserved id, or an `attachment` that is not in any message
   * expires; null for all others.
   */
  expires_at: number | null
  /** Unix seconds at which a ready artifact was moved to the bin; null for all others. */
  binned_at: number | null
}

/** Why an artifact became `unknown`; deleted when none of the artifact's tokens can still be valid. */
export interface ArtifactEndingTable {
  /** The artifact's id, which a new upload may use again. */
  id: string
  parent_key_id: string
  related_to: string | null
  reason: 'expired' | 'checksum_mismatch' | 'dangerous' | 'deleted'
  ended_at: number
}

/** A pending task for a complete upload; deleted when the task is done or a client deletes the artifact. */
export interface JobTable {
  /** `convert` makes the artifact ready; `hook` and `converted` call the host's handlers. */
  kind: 'convert' | 'hook' | 'converted'
  /** The upload's `blob`, which is also the event id of `hook`. */
  blob: string
  /** JSON: the event of `converted`, whose artifact may have been rejected. */
  event: string | null
  fence: Generated<number>
  /** True while a runner holds the lease, which expires at `next_at`. */
  is_taken: Generated<number>
  refusals: Generated<number>
  /** Number of failures that the content did not cause, such as crashes. */
  failures: Generated<number>
  next_at: number
}
