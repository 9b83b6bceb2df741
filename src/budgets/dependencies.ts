/** Declares the budgets module's dependencies. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Metrics } from '../telemetry/metrics.ts'

export interface Dependencies {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'budgetRefused' | 'budgetWait'>
}

/** Tokens, and costs in nano-dollars. */
export interface UsedAmounts {
  readonly tokens: number
  readonly usd: number
}

/** The usage from which a new budget starts; the usage module implements it. */
export interface SpentBefore {
  /** Writes all usage that has been recorded so far. */
  flush(): Promise<void>
  /** Drops cached budgets. */
  invalidate(): void
  /** Sums what a key, or one of its agents, has used since the UTC day that contains a time. */
  sumSpent(
    db: Database,
    owner: { readonly tenantId: string; readonly agentId: string | undefined },
    sinceSeconds: number,
  ): Promise<UsedAmounts>
}
