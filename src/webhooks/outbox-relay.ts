/**
 * Creates the deliveries of events that another module has stored in the main database. Several processes may
 * do this at the same time, because delivery ids are derived from event ids.
 */
import type { ConversationStorage } from '../db/open.ts'
import { insertDeliveries } from './deliveries.ts'
import type { WebhookDirectory } from './directory.ts'
import { deliveryIdOf, type NewDelivery, webhookEventTypes } from './events.ts'
import type { OperatorWebhooks } from './operator-webhooks.ts'

const BATCH = 100

/** An event that is waiting for its deliveries. */
interface WaitingEvent {
  readonly id: string
  /** Null for an event that only the operator's webhooks receive. */
  readonly parent_key_id: string | null
  /** Empty for an event that does not concern one agent. */
  readonly agent_id: string
  readonly type: string
  /** JSON: the data of the event. */
  readonly body: string
  readonly created_at: number
}

export interface EventSource {
  /** Lists events without deliveries, oldest first. */
  list(limit: number): Promise<readonly WaitingEvent[]>
  /** Marks events whose deliveries are stored. */
  markHanded(ids: readonly string[]): Promise<void>
}

interface RelayDeps {
  readonly source: EventSource
  readonly storage: ConversationStorage
  readonly directory: Pick<WebhookDirectory, 'find'>
  readonly operator: OperatorWebhooks
}

export class OutboxRelay {
  private readonly deps: RelayDeps

  constructor(deps: RelayDeps) {
    this.deps = deps
  }

  async run(): Promise<void> {
    const { source, storage } = this.deps
    for (;;) {
      const events = await source.list(BATCH)
      if (events.length === 0) return
      const deliveries = await this.prepare(events)
      if (deliveries.length > 0) {
        const { write } = await storage.open()
        await write.transaction().execute((trx) => insertDeliveries(trx, deliveries))
      }
      await source.markHanded(events.map(({ id }) => id))
      if (events.length < BATCH) return
    }
  }

  private async prepare(events: readonly WaitingEvent[]): Promise<NewDelivery[]> {
    const { directory, operator } = this.deps
    const subscribers = await directory.find()
    return events.flatMap(({ id: eventId, parent_key_id: tenantId, agent_id: agentId, ...event }) => {
      const stored = { eventId, createdAt: event.created_at }
      const data = JSON.parse(event.body)
      const type = webhookEventTypes.find((known) => known === event.type)
      const about = { tenantId: tenantId ?? '', agentId, conversationId: undefined, data }
      const own =
        type === undefined || tenantId === null ? [] : subscribers.prepare({ type, ...about }, stored)
      const forOperator = operator.listFor(event.type).map(
        ({ id: webhookId }): NewDelivery => ({
          ...{ id: deliveryIdOf(eventId, webhookId), webhookId, conversationId: null, text: undefined },
          type: event.type,
          createdAt: event.created_at,
          data: { ...(tenantId !== null && { parent_key_id: tenantId, agent_id: agentId || null }), ...data },
        }),
      )
      return [...own, ...forOperator]
    })
  }
}
