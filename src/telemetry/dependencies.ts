/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'

export interface Dependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly tracing: Tracing | undefined
}
