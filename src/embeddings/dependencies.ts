/** What embeddings need from other modules. */

import type { Config } from '../config/config.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import type { Breakers } from '../providers/retry.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { UsageTracker } from '../usage/tracker.ts'

export interface Dependencies {
  readonly config: Config
  readonly clock: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly models: ModelCatalogue
  readonly breakers: Breakers
  readonly usage: UsageTracker
}
