/** What this module needs of the rest of the service. */
import type { Breakers } from '../chat/breaker.ts'
import type { Config } from '../config.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { UsageBooks } from '../usage/books.ts'

export interface Dependencies {
  readonly config: Config
  readonly clock: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly models: ModelCatalogue
  readonly breakers: Breakers
  readonly usage: UsageBooks
}
