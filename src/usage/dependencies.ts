/** Declares the usage module's dependencies. */
import type { Logger } from 'pino'
import type { BoundViolations } from '../budgets/bound-violations.ts'
import type { BudgetEnforcer } from '../budgets/enforcer.ts'
import type { ModelMeters } from '../budgets/model-meters.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { PriceBook } from '../prices/lookup.ts'
import type { Metrics } from '../telemetry/metrics.ts'

export interface Dependencies {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly prices: PriceBook
  readonly budgets: BudgetEnforcer
  readonly meters: ModelMeters
  readonly violations: BoundViolations
}
