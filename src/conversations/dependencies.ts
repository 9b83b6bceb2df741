/** Lists the dependencies of the conversations module. */
import type { Logger } from 'pino'
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
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly bus: Bus
  readonly metrics: ConversationMetrics
  /** Reports changes to webhooks; undefined without webhooks. */
  readonly webhooks?: EventPublisher
  /** Derives the capabilities in event ids. */
  readonly capabilityKey: Buffer
  /** Returns unique microseconds since the epoch. */
  readonly nextPosition: () => number
  /** Whether no other server uses the database, so that every running turn in it is abandoned at the start. */
  readonly isOnlyServer: boolean
  /**
   * Maximum milliseconds that `close` waits for turns to end, and then for the store; 10 seconds by default.
   */
  readonly closeMs?: number
}
