/** Defines the queries of the webhook pages, and changes webhooks. */
import { type QueryClient, queryOptions } from '@tanstack/react-query'
import { api, type Inputs, type Outputs } from '../api.ts'

export type Webhook = Outputs['webhooks']['get']
export type Delivery = Outputs['webhooks']['deliveries']['data'][number]
export type TestResult = Outputs['webhooks']['test']
export type WebhookInput = Omit<Inputs['webhooks']['update'], 'webhook_id'>
export type EventType = Webhook['events'][number]

const PAGE_SIZE = 20
/** Polling interval while a delivery waits for its next attempt, in milliseconds. */
const REFRESH_MS = 5_000

export const webhooksQuery = queryOptions({
  queryKey: ['webhooks', 'list'],
  queryFn: () => api.webhooks.list.query({}),
})

export const webhookQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhooks', 'one', id],
    queryFn: () => api.webhooks.get.query({ webhook_id: id }),
  })

export const deliveriesQuery = (id: string, after: string | undefined) =>
  queryOptions({
    queryKey: ['webhooks', 'deliveries', id, after],
    queryFn: () => api.webhooks.deliveries.query({ webhook_id: id, limit: PAGE_SIZE, after }),
    refetchInterval: ({ state }) =>
      state.data?.data.some((one) => one.state === 'pending') === true ? REFRESH_MS : false,
  })

export function refreshWebhooks(queries: QueryClient): Promise<void> {
  return queries.invalidateQueries({ queryKey: ['webhooks'] })
}

export async function setEnabled(queries: QueryClient, webhook: Webhook, enabled: boolean): Promise<void> {
  const { id, url, events, agent_id, include_text } = webhook
  const fields = { url, events, agent_id, include_text, enabled }
  await api.webhooks.update.mutate({ webhook_id: id, ...fields }).finally(() => refreshWebhooks(queries))
}
