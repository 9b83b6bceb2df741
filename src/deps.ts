/** What the service's parts are handed at start: nothing in a room reaches for a global clock, chance or connection. */

import type { Logger } from 'pino'
import type { AgentDirectory } from './agents/directory.ts'
import type { ArtifactDesk } from './artifacts/desk.ts'
import type { ArtifactTokens } from './artifacts/tokens.ts'
import type { ChatBackend } from './chat/backend.ts'
import type { Breakers } from './chat/breaker.ts'
import type { Config } from './config.ts'
import type { UserDirectory } from './console/directory.ts'
import type { Converter } from './conversion/conversion.ts'
import type { Database } from './db/database.ts'
import type { KeyDirectory } from './keys/directory.ts'
import type { Sealer } from './keys/seal.ts'
import type { Clock } from './lib/clock.ts'
import type { Random } from './lib/random.ts'
import type { ModelCatalogue } from './models/catalogue.ts'
import type { Metrics } from './observability/metrics.ts'
import type { Tracing } from './observability/tracing.ts'
import type { Authenticator } from './rpc/authorize.ts'
import type { SharedState } from './shared-state/shared-state.ts'
import type { Blobs } from './storage/blobs.ts'
import type { OnUploadComplete } from './tools/host.ts'
import type { Toolbox } from './tools/tool.ts'
import type { UsageBooks } from './usage/books.ts'

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
  readonly artifacts: ArtifactDesk
  readonly tokens: ArtifactTokens
  /** Finds out who is calling. */
  readonly authenticator: Authenticator
  readonly usage: UsageBooks
}
