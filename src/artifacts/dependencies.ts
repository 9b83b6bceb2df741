/** Declares the services that the artifacts module depends on. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Converter } from '../conversion/conversion.ts'
import type { Database } from '../db/database.ts'
import type { StorageQuota } from '../files/quota.ts'
import type { ArtifactTokens } from '../identity/artifact-tokens.ts'
import type { KeyDirectory } from '../identity/authenticate.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Replicas } from '../replicas/replicas.ts'
import type { ResumableStore } from '../storage/blobs.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { ActiveUploads, ArtifactChanges } from './coordination.ts'
import type { OnUploadComplete } from './metadata.ts'

export interface Dependencies {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly log: Logger
  readonly metrics: Metrics
  readonly tracing: Tracing | undefined
  readonly keys: KeyDirectory
  readonly tokens: ArtifactTokens
  readonly quota: StorageQuota
  readonly shared: Replicas
  readonly converter: Converter
  readonly onUploadComplete: OnUploadComplete | undefined
  readonly artifacts: ArtifactService
  readonly visitorUploads: VisitorUploads
  /** Returns the uploads that are in messages. */
  readonly listSentUploads: (ids: readonly string[]) => Promise<ReadonlySet<string>>
}

export interface ArtifactService {
  readonly store: ResumableStore
  readonly changes: ArtifactChanges
  readonly activeUploads: ActiveUploads
  readonly processing: Processing
  close(): Promise<void>
}

/**
 * Runs the jobs that process complete uploads. Any replica can continue a job after a crash, because jobs are
 * stored in the database.
 */
export interface Processing {
  start(): Promise<void>
  /** Notifies all replicas that there may be new jobs. */
  wake(): void
  /** Stops a deleted upload's jobs in this process. Resolves when they have ended. */
  stop(blob: string): Promise<void>
  /** Stops running jobs and returns them to the queue. */
  close(): Promise<void>
}

/** The visitor who owns an upload, and the agent whose conversations may contain it. */
export interface UploadOwner {
  readonly tenantId: string
  readonly agentId: string
  readonly visitorId: string
}

export interface VisitorUpload {
  readonly id: string
  readonly filename: string
  readonly sizeBytes: number
  /** Detected from the content. */
  readonly mediaType: string
}

export interface ReservedUpload {
  readonly id: string
  readonly token: string
  /** Unix seconds. */
  readonly expiresAt: number
}

export interface VisitorUploads {
  /**
   * Reserves an upload of exactly this size. @throws ServiceError `rate_limit_exceeded`, `too_large`,
   * `storage_full`, `invalid_api_key`
   */
  reserve(
    owner: UploadOwner,
    file: Pick<VisitorUpload, 'filename' | 'sizeBytes'>,
    perHour: number,
  ): Promise<ReservedUpload>
  /** Returns a complete upload; undefined if it is unknown, unfinished, expired or another visitor's. */
  find(owner: UploadOwner, id: string): Promise<VisitorUpload | undefined>
  /** Keeps complete uploads until `delete`. Call it before a message that contains them is stored. */
  keep(ids: readonly string[]): Promise<void>
  /** Transfers all of a visitor's uploads to another visitor of the same agent. */
  move(from: UploadOwner, visitorId: string): Promise<void>
  delete(ids: readonly string[]): Promise<void>
  /** Deletes all of a visitor's uploads, including unfinished ones. */
  deleteOf(visitor: Pick<UploadOwner, 'tenantId' | 'visitorId'>): Promise<void>
  /**
   * Deletes uploads that expired by `now` (Unix seconds) and are not in any message. Also checks a batch of
   * kept uploads, and lets those that are not in any message expire. `listReferenced` returns the uploads
   * that are in messages.
   */
  sweep(now: number, listReferenced: (ids: readonly string[]) => Promise<ReadonlySet<string>>): Promise<void>
}
