/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { ArtifactTokens } from '../artifacts/tokens.ts'
import type { Config } from '../config.ts'
import type { UserDirectory } from '../console/directory.ts'
import type { KeyDirectory } from '../keys/directory.ts'
import type { Clock } from '../lib/clock.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { SharedState } from '../shared-state/shared-state.ts'

export interface Dependencies {
  readonly config: Config
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly keys: KeyDirectory
  readonly users: UserDirectory
  readonly shared: SharedState
  readonly tokens: ArtifactTokens
}
