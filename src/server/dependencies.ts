/** What the service's parts are handed at start: nothing in a room reaches for a global clock, chance or connection. */
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
import type { SharedState } from '../replicas/replicas.ts'
import type { Blobs } from '../storage/blobs.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { Toolbox } from '../tools/tools.ts'
import type { UsageBooks } from '../usage/tracker.ts'

/** Everything a verb may ask for; each takes the part it needs with `Pick<Deps, …>`. */
export interface Deps {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly log: Logger
  readonly metrics: Metrics
  /** Undefined where nobody traces. */
  readonly tracing: Tracing | undefined
  readonly sealer: Sealer
  readonly keys: KeyDirectory
  readonly agents: AgentDirectory
  readonly users: UserDirectory
  readonly backends: readonly ChatBackend[]
  readonly models: ModelCatalogue
  readonly breakers: Breakers
  /** What all replicas count together and tell each other. */
  readonly shared: SharedState
  /** The bytes of files. */
  readonly fileBlobs: Blobs
  /** Makes uploaded files fit for the web. */
  readonly converter: Converter
  /** What runs on the server when a model calls it. */
  readonly tools: Toolbox
  /** What the host does with each complete upload; without it nobody is told. */
  readonly onUploadComplete: OnUploadComplete | undefined
  readonly artifacts: ArtifactService
  readonly quota: StorageQuota
  readonly tokens: ArtifactTokens
  /** Finds out who is calling. */
  readonly authenticator: Authenticator
  readonly usage: UsageBooks
}
