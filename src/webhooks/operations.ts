/** Defines the operations of webhooks. */
import { z } from 'zod'
import { actorOf } from '../identity/audit.ts'
import { operationsOf } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'
import {
  CreatedWebhook,
  DeliveriesQuery,
  DeliveryReference,
  renderCreated,
  renderDelivery,
  renderTest,
  renderWebhook,
  Webhook,
  WebhookBody,
  WebhookCreation,
  WebhookDeleted,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookList,
  WebhookReference,
  WebhookTest,
  WebhookUpdate,
} from './schema.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listDeliveries,
  listWebhooks,
  recordReads,
  retryDelivery,
  rotateSecret,
  testWebhook,
  updateWebhook,
} from './webhooks.ts'

const { query, mutation } = operationsOf<Dependencies>()('Webhooks', { callers: ['parent'] })

const notFound = { 404: 'There is no webhook with this id.' }

export const webhooksOperations = {
  create: mutation({
    http: { method: 'POST', path: '/v1/webhooks' },
    response: { status: 201 },
    docs: {
      summary: 'Create a webhook',
      description: 'Returns the signing secret, which cannot be read again (docs/webhooks.md).',
      failures: { 409: 'The parent key already has 20 webhooks.' },
    },
    input: WebhookCreation,
    output: CreatedWebhook,
    run: async ({ context, input }) =>
      renderCreated(await createWebhook(context.deps, actorOf(context), context.caller.tenantId, input)),
  }),

  list: query({
    http: { method: 'GET', path: '/v1/webhooks' },
    docs: { summary: 'List the webhooks, oldest first' },
    input: z.strictObject({}),
    output: WebhookList,
    run: async ({ context: { deps, caller } }) => ({
      object: 'list' as const,
      data: (await listWebhooks(deps, caller.tenantId)).map(renderWebhook),
    }),
  }),

  get: query({
    http: { method: 'GET', path: '/v1/webhooks/{webhook_id}' },
    docs: { summary: 'Get a webhook', failures: notFound },
    input: WebhookReference,
    output: Webhook,
    run: async ({ context: { deps, caller }, input }) =>
      renderWebhook(await getWebhook(deps, caller.tenantId, input.webhook_id)),
  }),

  update: mutation({
    http: { method: 'PUT', path: '/v1/webhooks/{webhook_id}' },
    request: { bodySchema: WebhookBody },
    docs: {
      summary: 'Change a webhook',
      description: 'Replaces all fields. The secret does not change.',
      failures: notFound,
    },
    input: WebhookUpdate,
    output: Webhook,
    run: async ({ context, input: { webhook_id: id, ...fields } }) =>
      renderWebhook(await updateWebhook(context.deps, actorOf(context), context.caller.tenantId, id, fields)),
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/v1/webhooks/{webhook_id}' },
    docs: { summary: 'Delete a webhook and its deliveries', failures: notFound },
    input: WebhookReference,
    output: WebhookDeleted,
    run: async ({ context, input: { webhook_id: id } }) => {
      const { deps, caller } = context
      await deleteWebhook({ ...deps, storage: deps.webhooks.storage }, actorOf(context), caller.tenantId, id)
      return { id, object: 'webhook.deleted' as const, deleted: true as const }
    },
  }),

  rotateSecret: mutation({
    http: { method: 'POST', path: '/v1/webhooks/{webhook_id}/rotate-secret' },
    docs: {
      summary: "Replace a webhook's secret",
      description: 'Returns the new secret once. For 24 hours, both secrets sign each delivery.',
      failures: notFound,
    },
    input: WebhookReference,
    output: CreatedWebhook,
    run: async ({ context, input }) =>
      renderCreated(
        await rotateSecret(context.deps, actorOf(context), context.caller.tenantId, input.webhook_id),
      ),
  }),

  test: mutation({
    http: { method: 'POST', path: '/v1/webhooks/{webhook_id}/test' },
    docs: {
      summary: 'Send a test event',
      description:
        'Sends a `webhook.test` event once, and returns the result within 15 seconds. If the receiver fails, the request still succeeds, and the result describes the failure.',
      failures: notFound,
    },
    input: WebhookReference,
    output: WebhookTest,
    run: async ({ context: { deps, caller }, input }) =>
      renderTest(
        await testWebhook({ ...deps, deliverer: deps.webhooks.deliverer }, caller.tenantId, input.webhook_id),
      ),
  }),

  deliveries: query({
    http: { method: 'GET', path: '/v1/webhooks/{webhook_id}/deliveries' },
    docs: {
      summary: 'List the deliveries of a webhook, newest first',
      description: 'Deliveries are deleted 7 days after they are created, unless they are pending.',
      failures: notFound,
    },
    input: DeliveriesQuery,
    output: WebhookDeliveryList,
    run: async ({ context, input: { webhook_id: id, ...page } }) => {
      const { deps, caller } = context
      const { rows, hasMore } = await listDeliveries(deps, caller.tenantId, id, page)
      await recordReads(deps, actorOf(context), caller.tenantId, rows)
      return { object: 'list' as const, data: rows.map(renderDelivery), has_more: hasMore }
    },
  }),

  retry: mutation({
    http: { method: 'POST', path: '/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry' },
    docs: {
      summary: 'Retry a delivery now',
      description: "Keeps the delivery's id, and resets its number of attempts.",
      failures: {
        404: 'There is no webhook or delivery with this id.',
        409: 'The webhook is disabled.',
      },
    },
    input: DeliveryReference,
    output: WebhookDelivery,
    run: async ({ context, input: { webhook_id: id, delivery_id: deliveryId } }) => {
      const { deps, caller } = context
      const row = await retryDelivery(deps, caller.tenantId, id, deliveryId)
      await recordReads(deps, actorOf(context), caller.tenantId, [row])
      return renderDelivery(row)
    },
  }),
}
