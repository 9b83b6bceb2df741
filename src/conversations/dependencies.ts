/** Lists the dependencies of the conversations module. */
import type { Logger } from 'pino'
import type { HandoverRules } from '../agents/definition-parts.ts'
import type { ForgetSpending } from '../budgets/subjects.ts'
import type { Config } from '../config/config.ts'
import type { ConversationStorage } from '../db/open.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Bus } from '../replicas/bus.ts'
import type { Blobs } from '../storage/blobs.ts'
import type { ConversationMetrics } from '../telemetry/conversation-metrics.ts'
import type { EventPublisher } from '../webhooks/dependencies.ts'

export interface Dependencies {
  readonly config: Pick<Config, 'conversations'>
  readonly storage: ConversationStorage
  /** Opens the store of uploaded files, which also contains the data of items. */
  readonly openBlobs: () => Promise<Pick<Blobs, 'stage' | 'open' | 'delete'>>
  /** Deletes what budgets have counted for deleted conversations and visitors. */
  readonly forgetSpending: ForgetSpending
  /** Deletes the uploads of visitors whose messages were deleted. */
  readonly deleteUploads: (ids: readonly string[]) => Promise<void>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly bus: Bus
  readonly metrics: ConversationMetrics
  /** Reports changes to webhooks; undefined without webhooks. */
  readonly webhooks?: EventPublisher
  readonly capabilityKey: Buffer
  /** Returns unique microseconds since the epoch. */
  readonly nextPosition: () => number
  /** True if no other server uses the database; all running turns in it are then abandoned at the start. */
  readonly isOnlyServer: boolean
  /** Returns the rules of an agent; undefined without `handover` in its definition. */
  readonly findHandoverRules: (agent: {
    readonly tenantId: string
    readonly agentId: string
  }) => Promise<HandoverRules | undefined>
  /**
   * Maximum milliseconds that `close` waits for the turns, then for their events, then for the database; 10
   * seconds each by default.
   */
  readonly closeMs?: number
}
