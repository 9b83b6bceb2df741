/** Lists the dependencies of the webhooks module. */
import type { AgentDirectory } from '../agents/cache.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { ConversationStorage } from '../db/open.ts'
import type { Actor, AuditDeps } from '../identity/audit.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { Deliverer } from './deliverer.ts'
import type { WebhookDirectory } from './directory.ts'

export interface Dependencies {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly sealer: Sealer
  readonly agents: AgentDirectory
  readonly webhooks: WebhookService
  readonly conversations: { readonly reads: ReadRecorder }
}

/** Records who reads conversations, because deliveries can contain their text. */
interface ReadRecorder {
  record(
    deps: AuditDeps,
    actor: Actor,
    reading: { readonly tenantId: string; readonly conversationId: string; readonly agentId: string },
  ): Promise<void>
}

/** Reports a module's changes to webhooks. */
export interface EventPublisher extends Pick<WebhookDirectory, 'find'> {
  /** Sends the prepared deliveries; call it after the transaction that stores them. */
  wake(): void
}

export interface WebhookService extends WebhookDirectory, EventPublisher {
  readonly storage: ConversationStorage
  readonly deliverer: Deliverer
}
