/** Everything the modules of a service depend on; `build.ts` creates it. */
import type { Logger } from 'pino'
import type { AgentDirectory } from '../agents/cache.ts'
import type { ArtifactService } from '../artifacts/dependencies.ts'
import type { OnUploadComplete } from '../artifacts/metadata.ts'
import type { Config } from '../config/config.ts'
import type { Converter } from '../conversion/conversion.ts'
import type { Database } from '../db/database.ts'
import type { StorageQuota } from '../files/quota.ts'
import type { ArtifactTokens } from '../identity/artifact-tokens.ts'
import type { KeyDirectory } from '../identity/authenticate.ts'
import type { UserDirectory } from '../identity/user-cache.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import type { Authenticator } from '../operations/operation.ts'
import type { ChatBackend } from '../providers/provider.ts'
import type { Breakers } from '../providers/retry.ts'
import type { Replicas } from '../replicas/replicas.ts'
import type { Blobs } from '../storage/blobs.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { Toolbox } from '../tools/tools.ts'
import type { UsageTracker } from '../usage/tracker.ts'

export interface Deps {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly log: Logger
  readonly metrics: Metrics
  /** Undefined without a trace collector. */
  readonly tracing: Tracing | undefined
  readonly sealer: Sealer
  readonly keys: KeyDirectory
  readonly agents: AgentDirectory
  readonly users: UserDirectory
  readonly backends: readonly ChatBackend[]
  readonly models: ModelCatalogue
  readonly breakers: Breakers
  /** The limits, messages and membership that replicas share. */
  readonly shared: Replicas
  readonly fileBlobs: Blobs
  /** Converts uploads to formats that browsers show. */
  readonly converter: Converter
  /** The tools that run on the server. */
  readonly tools: Toolbox
  readonly onUploadComplete: OnUploadComplete | undefined
  readonly artifacts: ArtifactService
  readonly quota: StorageQuota
  readonly tokens: ArtifactTokens
  readonly authenticator: Authenticator
  readonly usage: UsageTracker
}
