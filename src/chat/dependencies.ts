/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { AgentDirectory } from '../agents/directory.ts'
import type { Config } from '../config.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { SharedState } from '../shared-state/shared-state.ts'
import type { Toolbox } from '../tools/tool.ts'
import type { UsageBooks } from '../usage/books.ts'
import type { Breakers } from './breaker.ts'

export interface Dependencies {
  readonly config: Config
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly agents: AgentDirectory
  readonly models: ModelCatalogue
  readonly breakers: Breakers
  readonly shared: SharedState
  readonly tools: Toolbox
  readonly usage: UsageBooks
}
