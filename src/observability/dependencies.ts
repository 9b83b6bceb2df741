/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { Breakers } from '../chat/breaker.ts'
import type { Database } from '../db/database.ts'
import type { Clock } from '../lib/clock.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import type { SharedState } from '../shared-state/shared-state.ts'
import type { Toolbox } from '../tools/tool.ts'
import type { Metrics } from './metrics.ts'
import type { Tracing } from './tracing.ts'

export interface Dependencies {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly tracing: Tracing | undefined
  readonly models: ModelCatalogue
  readonly breakers: Breakers
  readonly shared: SharedState
  readonly tools: Toolbox
}
