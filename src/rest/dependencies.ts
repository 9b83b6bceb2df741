/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { AgentDirectory } from '../agents/directory.ts'
import type { ArtifactTokens } from '../artifacts/tokens.ts'
import type { Config } from '../config.ts'
import type { UserDirectory } from '../console/directory.ts'
import type { Database } from '../db/database.ts'
import type { KeyDirectory } from '../keys/directory.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { SharedState } from '../shared-state/shared-state.ts'
import type { Blobs } from '../storage/blobs.ts'

export interface Dependencies {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly keys: KeyDirectory
  readonly agents: AgentDirectory
  readonly users: UserDirectory
  readonly shared: SharedState
  readonly fileBlobs: Blobs
  readonly tokens: ArtifactTokens
}
