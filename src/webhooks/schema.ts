/** Defines the schemas of webhooks and their deliveries, and renders them. */
import { z } from 'zod'
import { reference } from '../lib/schema-bounds.ts'
import type { TestedDelivery } from './deliverer.ts'
import type { DeliveryRow } from './deliveries.ts'
import { webhookEventTypes } from './events.ts'
import type { WebhookRow } from './store.ts'

const seconds = z.int().meta({ description: 'Unix seconds.' })

const fields = {
  url: z
    .string()
    .max(2_000, 'must have at most 2000 characters')
    .meta({
      description: 'URL that receives the events: https on port 443, unless the operator allows its host.',
      examples: ['https://example.org/hook'],
    }),
  events: z
    .array(z.enum(webhookEventTypes, { error: `must be one of ${webhookEventTypes.join(', ')}` }))
    .min(1, 'must contain at least one event')
    .max(webhookEventTypes.length, `must contain at most ${webhookEventTypes.length} events`),
  agent_id: z
    .string()
    .max(200)
    .nullish()
    .meta({ description: 'Limits the events to those of this agent; null for all agents.' }),
  include_text: z
    .boolean()
    .default(false)
    .meta({ description: 'Whether the events contain conversation text.' }),
}

const enabled = z
  .boolean()
  .default(true)
  .meta({ description: 'Whether events are delivered; true also enables a webhook that Parley disabled.' })

export const WebhookCreation = z.strictObject(fields).meta({ id: 'WebhookCreation' })
export const WebhookBody = z.strictObject({ ...fields, enabled }).meta({ id: 'WebhookUpdate' })
export type WebhookFields = z.output<typeof WebhookBody>

const webhookId = reference().meta({ description: 'Webhook id: `wh_` and 24 characters.' })
export const WebhookReference = z.strictObject({ webhook_id: webhookId })
export const WebhookUpdate = WebhookBody.extend({ webhook_id: webhookId })

export const Webhook = z
  .strictObject({
    id: z.string(),
    object: z.literal('webhook'),
    url: z.string(),
    events: z.array(z.enum(webhookEventTypes)),
    agent_id: z.string().nullable(),
    include_text: z.boolean(),
    state: z.enum(['enabled', 'disabled']),
    disabled_reason: z.enum(['owner', 'gone', 'failing']).nullable().meta({
      description:
        '`owner` if the owner disabled it, `gone` after a response with status 410, `failing` after five days of failures.',
    }),
    failing_since: seconds.nullable().meta({
      description:
        'Time of the first failed delivery since the last successful one; null if the last delivery succeeded.',
    }),
    previous_valid_until: seconds.nullable().meta({
      description: 'Time until which the previous secret also signs; null before the first rotation.',
    }),
    created_at: seconds,
    updated_at: seconds,
  })
  .meta({ id: 'Webhook' })
export type Webhook = z.output<typeof Webhook>

export const CreatedWebhook = Webhook.extend({
  secret: z.string().meta({ description: 'Signing secret (`whsec_…`). It is shown only once.' }),
}).meta({ id: 'CreatedWebhook' })

export const WebhookList = z
  .strictObject({ object: z.literal('list'), data: z.array(Webhook) })
  .meta({ id: 'WebhookList' })

export const WebhookDeleted = z
  .strictObject({ id: z.string(), object: z.literal('webhook.deleted'), deleted: z.literal(true) })
  .meta({ id: 'WebhookDeleted' })

export const DeliveriesQuery = WebhookReference.extend({
  limit: z.int().min(1).max(100).default(20).meta({ description: 'Maximum number of deliveries.' }),
  after: reference().optional().meta({ description: 'Id of the last delivery of the previous page.' }),
})

export const DeliveryReference = WebhookReference.extend({
  delivery_id: reference().meta({ description: 'Delivery id: `whd_` and 24 characters.' }),
})

export const WebhookDelivery = z
  .strictObject({
    id: z.string().meta({ description: 'The `webhook-id` header of each attempt.' }),
    object: z.literal('webhook.delivery'),
    webhook_id: z.string(),
    type: z.string().meta({ description: 'Event type, or `webhook.test`.' }),
    conversation_id: z.string().nullable(),
    state: z.enum(['pending', 'delivered', 'failed']),
    attempts: z.int().meta({ description: 'Number of attempts since the delivery was created or retried.' }),
    next_at: seconds.nullable().meta({ description: 'Time of the next attempt; null after the last one.' }),
    last_status: z
      .int()
      .nullable()
      .meta({ description: 'HTTP status of the last attempt; null if there was no response.' }),
    last_error: z.string().nullable(),
    body: z.string().meta({ description: 'Body of the request (JSON).' }),
    created_at: seconds,
  })
  .meta({ id: 'WebhookDelivery' })
export type WebhookDelivery = z.output<typeof WebhookDelivery>

export const WebhookTest = WebhookDelivery.extend({
  duration_ms: z
    .int()
    .meta({ description: 'Milliseconds until the receiver responded or the attempt failed.' }),
}).meta({ id: 'WebhookTest' })

export const WebhookDeliveryList = z
  .strictObject({ object: z.literal('list'), data: z.array(WebhookDelivery), has_more: z.boolean() })
  .meta({ id: 'WebhookDeliveryList' })

export function renderWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    object: 'webhook',
    url: row.url,
    events: JSON.parse(row.events),
    agent_id: row.agent_id,
    include_text: row.include_text === 1,
    state: row.state,
    disabled_reason: row.disabled_reason,
    failing_since: row.failing_since,
    previous_valid_until: row.previous_until,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

export function renderCreated({
  row,
  secret,
}: {
  readonly row: WebhookRow
  readonly secret: string
}): z.output<typeof CreatedWebhook> {
  return { ...renderWebhook(row), secret }
}

export function renderDelivery(row: DeliveryRow): WebhookDelivery {
  return {
    id: row.id,
    object: 'webhook.delivery',
    webhook_id: row.webhook_id,
    type: row.type,
    conversation_id: row.conversation_id,
    state: row.state,
    attempts: row.attempt,
    next_at: row.next_at,
    last_status: row.last_status,
    last_error: row.last_error,
    body: row.body,
    created_at: row.created_at,
  }
}

export function renderTest(row: TestedDelivery): z.output<typeof WebhookTest> {
  return { ...renderDelivery(row), duration_ms: row.durationMs }
}
