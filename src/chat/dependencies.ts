/** Declares the services that the chat module depends on. */
import type { Logger } from 'pino'
import type { AgentDirectory } from '../agents/cache.ts'
import type { BudgetEnforcer } from '../budgets/enforcer.ts'
import type { Config } from '../config/config.ts'
import type { Conversations } from '../conversations/conversations.ts'
import type { VisitorTokens } from '../identity/visitor-tokens.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import type { Breakers } from '../providers/retry.ts'
import type { Replicas } from '../replicas/replicas.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Toolbox } from '../tools/tools.ts'
import type { UsageTracker } from '../usage/tracker.ts'

export interface Dependencies {
  readonly config: Config
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly agents: AgentDirectory
  readonly models: ModelCatalogue
  readonly breakers: Breakers
  readonly shared: Replicas
  readonly tools: Toolbox
  readonly usage: UsageTracker
  readonly budgets: BudgetEnforcer
  readonly conversations: Conversations
  readonly visitorTokens: VisitorTokens
}
