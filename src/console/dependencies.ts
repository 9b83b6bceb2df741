/** Declares the services that the console module depends on. */
import type { AgentDirectory } from '../agents/cache.ts'
import type { BudgetEnforcer } from '../budgets/enforcer.ts'
import type { Config } from '../config/config.ts'
import type { Conversations } from '../conversations/conversations.ts'
import type { Database } from '../db/database.ts'
import type { KeyDirectory, UserDirectory } from '../identity/authenticate.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Replicas } from '../replicas/replicas.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { UsageTracker } from '../usage/tracker.ts'
import type { WebhookService } from '../webhooks/dependencies.ts'

export interface Dependencies {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly keys: KeyDirectory
  readonly users: UserDirectory
  readonly agents: AgentDirectory
  readonly usage: UsageTracker
  readonly budgets: BudgetEnforcer
  readonly metrics: Metrics
  readonly shared: Replicas
  readonly conversations: Conversations
  readonly webhooks: WebhookService
}
