/** Declares the telemetry module's dependencies. */
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Metrics } from './metrics.ts'
import type { Tracing } from './tracing.ts'

export interface Dependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly tracing: Tracing | undefined
}
