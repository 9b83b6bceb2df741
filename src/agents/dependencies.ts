/** Declares the services that the agents module depends on. */
import type { Logger } from 'pino'
import type { BudgetEnforcer } from '../budgets/enforcer.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { KeyDirectory } from '../identity/authenticate.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import type { Toolbox } from '../tools/tools.ts'
import type { UsageTracker } from '../usage/tracker.ts'

export interface Dependencies {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly log: Logger
  readonly sealer: Sealer
  readonly keys: KeyDirectory
  readonly models: ModelCatalogue
  readonly tools: Toolbox
  readonly usage: UsageTracker
  readonly budgets: BudgetEnforcer
  /** Deletes the data that other modules stored for a deleted agent. */
  readonly onAgentDeleted: (tenantId: string, agentId: string) => Promise<void>
}
