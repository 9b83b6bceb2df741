/** Caches the enabled webhooks, so that an event usually causes no database query. */
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { ConversationStorage } from '../db/open.ts'
import { listRevokedKeys } from '../identity/keys.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import { deleteDeliveriesOf } from './deliveries.ts'
import { type Subscriber, Subscribers } from './events.ts'
import { deleteWebhookRows, listAllWebhookRows, type WebhookRow } from './store.ts'

/**
 * Lifetime of the cache. Limits the delay of changes that the bus does not report, such as changes made by
 * the CLI.
 */
const KEEP_MS = 10_000

export interface WebhookDirectory {
  find(): Subscribers | Promise<Subscribers>
  /** Drops the cached webhooks. Call it after every change to them. */
  invalidate(): void
}

interface DirectoryDeps {
  readonly db: Database
  readonly storage: ConversationStorage
  readonly config: Pick<Config, 'server' | 'webhooks'>
  readonly clock: Clock
  readonly random: Random
  /** Called when an event has at least one receiver. */
  readonly onPrepared: () => void
}

export function createWebhookDirectory(deps: DirectoryDeps): WebhookDirectory {
  const { clock, random, config, onPrepared } = deps
  const cache = createTtlCache<Subscribers>(clock, { max: 1, keepMs: () => KEEP_MS })
  const subscriberDeps = { clock, random, publicUrl: config.server.publicUrl, onPrepared }
  async function load(): Promise<Subscribers> {
    const rows = config.webhooks.isAllowed ? await listAllWebhookRows(deps.db) : []
    const live = await deleteOfRevokedKeys(deps, rows)
    return new Subscribers(live.filter(({ state }) => state === 'enabled').map(toSubscriber), subscriberDeps)
  }
  return { find: () => cache.get('all', load), invalidate: () => cache.invalidate() }
}

/** Deletes the webhooks of revoked keys, and returns the others. */
async function deleteOfRevokedKeys(
  { db, storage }: Pick<DirectoryDeps, 'db' | 'storage'>,
  rows: readonly WebhookRow[],
): Promise<readonly WebhookRow[]> {
  const tenants = [...new Set(rows.map(({ tenant }) => tenant))]
  const revoked = new Set(await listRevokedKeys(db, tenants))
  if (revoked.size === 0) return rows
  const ids = rows.filter(({ tenant }) => revoked.has(tenant)).map(({ id }) => id)
  await deleteWebhookRows(db, ids)
  const opened = await storage.find()
  if (opened !== undefined) await deleteDeliveriesOf(opened.write, ids)
  return rows.filter(({ tenant }) => !revoked.has(tenant))
}

function toSubscriber({ id, tenant, agent_id, events, include_text }: WebhookRow): Subscriber {
  return {
    id,
    tenantId: tenant,
    agentId: agent_id,
    events: JSON.parse(events),
    includesText: include_text === 1,
  }
}
