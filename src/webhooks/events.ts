/** Defines webhook events, and selects the webhooks that receive each event. */
import type { Clock } from '../lib/clock.ts'
import { unixSeconds } from '../lib/clock.ts'
import { newId, type Random } from '../lib/ids.ts'

export const webhookEventTypes = [
  'conversation.created',
  'conversation.waiting',
  'conversation.taken_over',
  'conversation.message',
  'conversation.handed_back',
  'conversation.rated',
  'conversation.deleted',
  'turn.failed',
  'visitor.erased',
  'budget.threshold_reached',
  'budget.exhausted',
] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]

/** An event that another module stored before its deliveries were created. */
interface StoredEvent {
  readonly eventId: string
  /** Unix seconds. */
  readonly createdAt: number
}

export interface WebhookEvent {
  readonly type: WebhookEventType
  readonly tenantId: string
  /** Empty for a conversation without an agent. */
  readonly agentId: string
  readonly conversationId: string | undefined
  /** Must not contain text from the conversation. */
  readonly data?: Readonly<Record<string, unknown>>
  /** Text from the conversation, which only webhooks with `include_text` receive. */
  readonly text?: Readonly<Record<string, string>>
}

/** A delivery, to be stored in the same transaction as the change that it reports. */
export interface NewDelivery {
  readonly id: string
  readonly webhookId: string
  readonly conversationId: string | null
  /** A `WebhookEventType`, `webhook.test`, or a type that only the operator's webhooks receive. */
  readonly type: string
  /** Unix seconds. */
  readonly createdAt: number
  readonly data: Readonly<Record<string, unknown>>
  readonly text: Readonly<Record<string, string>> | undefined
}

/** A webhook that is not disabled. */
export interface Subscriber {
  readonly id: string
  readonly tenantId: string
  /** Null for the events of all agents. */
  readonly agentId: string | null
  readonly events: readonly string[]
  readonly includesText: boolean
}

interface SubscriberDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
  readonly publicUrl: string | undefined
  /** Called when an event has at least one receiver. */
  readonly onPrepared: () => void
}

const ID_LENGTH = 24
const DELIVERY_PREFIX = 'whd_'

/** The webhooks of all tenants that were enabled when they were read. */
export class Subscribers {
  private readonly byTenant: ReadonlyMap<string, readonly Subscriber[]>
  private readonly deps: SubscriberDeps

  constructor(subscribers: readonly Subscriber[], deps: SubscriberDeps) {
    this.byTenant = Map.groupBy(subscribers, ({ tenantId }) => tenantId)
    this.deps = deps
  }

  get isEmpty(): boolean {
    return this.byTenant.size === 0
  }

  /** Returns a delivery for each webhook that receives the event; store them with `insertDeliveries`. */
  prepare(event: WebhookEvent, stored?: StoredEvent): NewDelivery[] {
    const { type, tenantId, agentId, conversationId, data, text } = event
    const receivers = (this.byTenant.get(tenantId) ?? []).filter(
      (each) => each.events.includes(type) && (each.agentId === null || each.agentId === agentId),
    )
    if (receivers.length === 0) return []
    this.deps.onPrepared()
    const about = {
      ...(conversationId !== undefined && {
        conversation_id: conversationId,
        url: this.urlOf(conversationId),
      }),
      agent_id: agentId || null,
      ...data,
    }
    return receivers.map(({ id, includesText }) => ({
      ...newDelivery({ id, type }, this.deps),
      ...(stored !== undefined && { id: deliveryIdOf(stored.eventId, id), createdAt: stored.createdAt }),
      conversationId: conversationId ?? null,
      data: about,
      text: includesText ? text : undefined,
    }))
  }

  private urlOf(conversationId: string): string | null {
    const { publicUrl } = this.deps
    return publicUrl === undefined
      ? null
      : `${publicUrl.replace(/\/$/, '')}/console/conversations/${conversationId}`
  }
}

/**
 * Returns the same id each time a stored event is passed to a webhook, so that the delivery is stored only
 * once.
 */
export function deliveryIdOf(eventId: string, webhookId: string): string {
  return `${eventId}.${webhookId}`
}

/** Returns the event's id, which is the same for all its receivers. */
export function messageIdOf(deliveryId: string): string {
  return deliveryId.replace(/\..*/, '')
}

/** Creates a delivery without data. */
export function newDelivery(
  { id: webhookId, type }: { readonly id: string; readonly type: NewDelivery['type'] },
  { clock, random }: Pick<SubscriberDeps, 'clock' | 'random'>,
): NewDelivery {
  return {
    id: newId(DELIVERY_PREFIX, ID_LENGTH, random),
    webhookId,
    conversationId: null,
    type,
    createdAt: unixSeconds(clock),
    data: {},
    text: undefined,
  }
}

const MAX_BODY_BYTES = 20_000

/** Renders the body of a delivery, and shortens its text until the body has at most 20 KB. */
export function renderBody({ type, createdAt, data, text = {} }: NewDelivery): string {
  let texts = text
  for (;;) {
    const timestamp = new Date(createdAt * 1000).toISOString().replace('.000Z', 'Z')
    const body = JSON.stringify({ type, timestamp, data: { ...data, ...texts } })
    const longest = Math.max(0, ...Object.values(texts).map(({ length }) => length))
    if (Buffer.byteLength(body) <= MAX_BODY_BYTES || longest === 0) return body
    texts = Object.fromEntries(
      Object.entries(texts).map(([name, value]) => [name, value.slice(0, Math.floor(longest / 2))]),
    )
  }
}
