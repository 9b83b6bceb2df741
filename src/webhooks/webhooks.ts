/** Creates, changes, deletes and tests webhooks, and lists and retries their deliveries. */
import { findUrlProblem } from '../http/egress.ts'
import { type Actor, recordAudit } from '../identity/audit.ts'
import { lockTenant } from '../identity/keys.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { type Page, type PageQuery, readPage } from '../lib/page.ts'
import {
  type DeliveryRow,
  deleteDeliveriesOf,
  findDelivery,
  listDeliveryRows,
  restartDelivery,
} from './deliveries.ts'
import type { Dependencies } from './dependencies.ts'
import type { WebhookFields } from './schema.ts'
import { newSecret, sealSecret } from './sealed-secrets.ts'
import {
  deleteWebhookRows,
  findWebhookRow,
  insertWebhookRow,
  listWebhookRows,
  moveWebhookRows,
  updateWebhookRow,
  type WebhookRow,
} from './store.ts'

const MAX_WEBHOOKS = 20
const ID_LENGTH = 24
const OVERLAP_SECONDS = 86_400

type WebhookDeps = Omit<Dependencies, 'agents' | 'webhooks' | 'conversations'> &
  Partial<Pick<Dependencies, 'agents' | 'webhooks'>>

export interface WebhookWithSecret {
  readonly row: WebhookRow
  /** Shown once. */
  readonly secret: string
}

export function listWebhooks({ db }: Pick<Dependencies, 'db'>, tenantId: string): Promise<WebhookRow[]> {
  return listWebhookRows(db, tenantId)
}

/** @throws ServiceError `not_found`, including for another tenant's webhook */
export async function getWebhook(
  { db }: Pick<Dependencies, 'db'>,
  tenantId: string | undefined,
  id: string,
): Promise<WebhookRow> {
  const row = await findWebhookRow(db, id, tenantId)
  if (row === undefined)
    throw new ServiceError('not_found', `Webhook with id '${id}' not found.`, { param: 'webhook_id' })
  return row
}

/** @throws ServiceError for an invalid field, an unknown agent, or too many webhooks */
export async function createWebhook(
  deps: WebhookDeps,
  actor: Actor,
  tenantId: string,
  fields: Omit<WebhookFields, 'enabled'>,
): Promise<WebhookWithSecret> {
  await assertFields(deps, tenantId, fields)
  const id = newId('wh_', ID_LENGTH, deps.random)
  const secret = newSecret(deps.random)
  const now = unixSeconds(deps.clock)
  const row: WebhookRow = {
    ...{ id, tenant: tenantId, ...toColumns(fields) },
    ...{ secret_sealed: sealSecret(deps.sealer, id, secret), previous_sealed: null, previous_until: null },
    ...{ state: 'enabled', disabled_reason: null, failing_since: null, created_at: now, updated_at: now },
  }
  await deps.db.transaction().execute(async (trx) => {
    await lockTenant({ db: trx }, tenantId)
    if ((await listWebhookRows(trx, tenantId)).length >= MAX_WEBHOOKS)
      throw new ServiceError('conflict', `There are already ${MAX_WEBHOOKS} webhooks; delete one first.`)
    await insertWebhookRow(trx, row)
    await record({ ...deps, db: trx }, actor, 'webhook.create', row)
  })
  deps.webhooks?.invalidate()
  return { row, secret }
}

/** Replaces the fields; `enabled` starts or stops deliveries. @throws ServiceError */
export async function updateWebhook(
  deps: Dependencies,
  actor: Actor,
  tenantId: string,
  id: string,
  { enabled, ...fields }: WebhookFields,
): Promise<WebhookRow> {
  await assertFields(deps, tenantId, fields)
  const row = await deps.db.transaction().execute(async (trx) => {
    await getWebhook({ db: trx }, tenantId, id)
    const changed = await updateWebhookRow(trx, id, {
      ...toColumns(fields),
      state: enabled ? 'enabled' : 'disabled',
      disabled_reason: enabled ? null : 'owner',
      failing_since: null,
      updated_at: unixSeconds(deps.clock),
    })
    await record({ ...deps, db: trx }, actor, 'webhook.update', changed as WebhookRow)
    return changed as WebhookRow
  })
  deps.webhooks.invalidate()
  return row
}

/** Deletes a webhook with its deliveries. @throws ServiceError `not_found` */
export async function deleteWebhook(
  deps: Pick<WebhookDeps, 'db' | 'random' | 'nextPosition' | 'webhooks'> &
    Pick<Dependencies['webhooks'], 'storage'>,
  actor: Actor,
  tenantId: string | undefined,
  id: string,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const row = await getWebhook({ db: trx }, tenantId, id)
    await deleteWebhookRows(trx, [id])
    await record({ ...deps, db: trx }, actor, 'webhook.delete', row)
  })
  deps.webhooks?.invalidate()
  const opened = await deps.storage.find()
  if (opened !== undefined) await deleteDeliveriesOf(opened.write, [id])
}

/** Replaces the secret. The previous one also signs for 24 hours. @throws ServiceError `not_found` */
export async function rotateSecret(
  deps: Dependencies,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<WebhookWithSecret> {
  const secret = newSecret(deps.random)
  const now = unixSeconds(deps.clock)
  const row = await deps.db.transaction().execute(async (trx) => {
    const before = await getWebhook({ db: trx }, tenantId, id)
    const changed = await updateWebhookRow(trx, id, {
      secret_sealed: sealSecret(deps.sealer, id, secret),
      previous_sealed: before.secret_sealed,
      previous_until: now + OVERLAP_SECONDS,
      updated_at: now,
    })
    await record({ ...deps, db: trx }, actor, 'webhook.rotate', before)
    return changed as WebhookRow
  })
  return { row, secret }
}

/**
 * Sends a test event once, and returns its result. @throws ServiceError `not_found`,
 * `insufficient_permissions`
 */
export async function testWebhook(
  deps: Pick<Dependencies, 'config' | 'db'> & Pick<Dependencies['webhooks'], 'deliverer'>,
  tenantId: string | undefined,
  id: string,
) {
  assertAllowed(deps)
  return deps.deliverer.test(await getWebhook(deps, tenantId, id))
}

/** Lists a webhook's stored deliveries, newest first. @throws ServiceError */
export async function listDeliveries(
  deps: Dependencies,
  tenantId: string,
  id: string,
  query: PageQuery,
): Promise<Page<DeliveryRow>> {
  await getWebhook(deps, tenantId, id)
  const opened = await deps.webhooks.storage.find()
  return readPage(query, {
    find: async (deliveryId) => opened && findDelivery(opened.read, id, deliveryId),
    list: async (limit, after) =>
      opened === undefined ? [] : listDeliveryRows(opened.read, id, { limit, after }),
  })
}

/**
 * Makes a delivery due now, and resets its number of attempts. @throws ServiceError `not_found`, `conflict`
 */
export async function retryDelivery(
  deps: Dependencies,
  tenantId: string,
  id: string,
  deliveryId: string,
): Promise<DeliveryRow> {
  assertAllowed(deps)
  const webhook = await getWebhook(deps, tenantId, id)
  if (webhook.state === 'disabled')
    throw new ServiceError('conflict', 'The webhook is disabled; enable it first.', {
      code: 'webhook_disabled',
    })
  const opened = await deps.webhooks.storage.find()
  const nowSeconds = unixSeconds(deps.clock)
  const row = opened && (await restartDelivery(opened.write, id, deliveryId, nowSeconds))
  if (row === undefined)
    throw new ServiceError('not_found', `Delivery with id '${deliveryId}' not found.`, {
      param: 'delivery_id',
    })
  deps.webhooks.deliverer.expect()
  deps.webhooks.deliverer.wake()
  return row
}

/** Records that an actor has read the conversations whose text is in the deliveries. */
export async function recordReads(
  deps: Pick<Dependencies, 'db' | 'random' | 'nextPosition' | 'conversations'>,
  actor: Actor,
  tenantId: string,
  deliveries: readonly Pick<DeliveryRow, 'conversation_id' | 'body'>[],
): Promise<void> {
  for (const { conversation_id: conversationId, body } of deliveries) {
    const { data } = JSON.parse(body) as { data: { text?: string; agent_id?: string | null } }
    if (conversationId === null || data.text === undefined) continue
    const reading = { tenantId, conversationId, agentId: data.agent_id ?? '' }
    await deps.conversations.reads.record(deps, actor, reading)
  }
}

/** Moves the webhooks of one parent key to another, in the caller's transaction. */
export function moveWebhooks(db: Dependencies['db'], from: string, to: string): Promise<void> {
  return moveWebhookRows(db, from, to)
}

function toColumns({ url, events, agent_id = null, include_text }: Omit<WebhookFields, 'enabled'>) {
  const sorted = [...new Set(events)].sort()
  return { url, events: JSON.stringify(sorted), agent_id, include_text: include_text ? 1 : 0 }
}

async function assertFields(
  deps: WebhookDeps,
  tenantId: string,
  { url, agent_id: agentId }: Omit<WebhookFields, 'enabled'>,
): Promise<void> {
  assertAllowed(deps)
  const problem = findUrlProblem(url, deps.config.webhooks.allow)
  if (problem !== undefined) throw new ServiceError('invalid_value', `url: ${problem}`, { param: 'url' })
  if (agentId == null) return
  const { agents } = deps
  const isKnown = agents === undefined || (await agents.find(tenantId, agentId)) !== undefined
  if (!isKnown)
    throw new ServiceError('invalid_value', 'agent_id: must be the id of one of your agents', {
      param: 'agent_id',
    })
}

function assertAllowed({ config }: Pick<Dependencies, 'config'>): void {
  if (config.webhooks.isAllowed) return
  throw new ServiceError(
    'insufficient_permissions',
    'This server does not allow webhooks (PARLEY_WEBHOOKS=forbidden).',
  )
}

function record(
  deps: Pick<Dependencies, 'db' | 'random' | 'nextPosition'>,
  actor: Actor,
  action: 'webhook.create' | 'webhook.update' | 'webhook.delete' | 'webhook.rotate',
  { id, tenant, url, events, agent_id, include_text, state }: WebhookRow,
): Promise<void> {
  return recordAudit(deps, actor, {
    action,
    target: { kind: 'webhook', id },
    tenantId: tenant,
    // Only the origin, because the rest of the URL may contain a secret.
    details: {
      origin: new URL(url).origin,
      events: JSON.parse(events),
      agent_id,
      include_text: include_text === 1,
      state,
    },
  })
}
