/** What this module needs of the rest of the service. */
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { Clock } from '../lib/clock.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { SharedState } from '../shared-state/shared-state.ts'
import type { Authenticator } from './authorize.ts'

export interface Dependencies {
  readonly config: Config
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly shared: Pick<SharedState, 'limiter'>
  readonly authenticator: Authenticator
}
