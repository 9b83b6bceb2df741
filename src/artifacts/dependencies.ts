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
import type { VisitorUploads } from './visitor-uploads/visitor-uploads.ts'

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
  /** Returns which uploads messages contain. */
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
