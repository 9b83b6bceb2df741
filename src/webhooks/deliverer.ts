/** Sends due deliveries. Any replica can claim a delivery; a claim expires if the replica stops. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { ConversationDatabase, ConversationStorage } from '../db/open.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { ConversationMetrics } from '../telemetry/conversation-metrics.ts'
import {
  claimDeliveries,
  type DeliveryRow,
  deleteDeliveriesOf,
  deleteOldDeliveries,
  failPending,
  findDelivery,
  insertDeliveries,
  type Outcome,
  recordAttempt,
} from './deliveries.ts'
import type { WebhookDirectory } from './directory.ts'
import { type NewDelivery, newDelivery } from './events.ts'
import type { OperatorWebhooks } from './operator-webhooks.ts'
import type { OutboxRelay } from './outbox-relay.ts'
import { FAILING_SECONDS, secondsUntilNext } from './schedule.ts'
import type { Sender, Sent } from './sender.ts'
import { findWebhookRow, markFailing, markWorking, updateWebhookRow, type WebhookRow } from './store.ts'

const POLL_EVERY_MS = 2_000
/** Longer than an attempt takes. */
const CLAIM_SECONDS = 60
/** Maximum number of attempts that run at the same time. */
const MAX_ATTEMPTS = 16
/**
 * The same limit for a single webhook, so that a slow receiver does not delay deliveries to other webhooks.
 */
const MAX_ATTEMPTS_EACH = 4
const CLEAN_EVERY_MS = 600_000
const KEEP_SECONDS = 7 * 86_400
const BATCH = 200

interface DelivererDeps {
  readonly config: Pick<Config, 'webhooks'>
  readonly db: Database
  readonly storage: ConversationStorage
  readonly directory: WebhookDirectory
  readonly sender: Sender
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: ConversationMetrics
  readonly operator: OperatorWebhooks
  /** Creates the deliveries of events that other modules have stored; undefined in CLI commands. */
  readonly relay?: Pick<OutboxRelay, 'run'> | undefined
}

export interface TestedDelivery extends DeliveryRow {
  /** The time until the receiver responded or the attempt failed. */
  readonly durationMs: number
}

export class Deliverer {
  private readonly deps: DelivererDeps
  private readonly running = new Map<Promise<void>, string>()
  private readonly timers: NodeJS.Timeout[] = []
  private claiming: Promise<void> | undefined
  private mayBeDue = false
  private isClosed = false

  constructor(deps: DelivererDeps) {
    this.deps = deps
  }

  /** Looks for due deliveries every two seconds, and deletes old ones every ten minutes, until `close`. */
  start(): void {
    if (!this.deps.config.webhooks.isAllowed && this.deps.operator.isEmpty) return
    this.timers.push(
      setInterval(() => this.poll(), POLL_EVERY_MS).unref(),
      setInterval(() => void this.clean(), CLEAN_EVERY_MS).unref(),
    )
    this.poll()
    void this.clean()
  }

  /** Announces deliveries that a transaction is about to store. */
  expect(): void {
    this.mayBeDue = true
  }

  /** Sends the expected deliveries; call it after the transaction that stores them. */
  wake(): void {
    if (!this.mayBeDue) return
    this.mayBeDue = false
    this.poll()
  }

  /** Attempts all deliveries that are due now, and resolves when the attempts have ended. */
  async deliverDue(): Promise<void> {
    for (;;) {
      await this.claim()
      if (this.running.size === 0) return
      await Promise.all(this.running.keys())
    }
  }

  /** Sends a test event once, and returns the result and its duration. */
  async test(webhook: WebhookRow): Promise<TestedDelivery> {
    const { clock, sender } = this.deps
    const { write } = await this.deps.storage.open()
    const test: NewDelivery = {
      ...newDelivery({ id: webhook.id, type: 'webhook.test' }, this.deps),
      data: { webhook_id: webhook.id },
    }
    const nextAt = unixSeconds(clock) + CLAIM_SECONDS
    await insertDeliveries(write, [test], {}, nextAt)
    const row = (await findDelivery(write, webhook.id, test.id)) as DeliveryRow
    const startedAt = clock.monotonic()
    const { succeeded, status, error } = await sender.send(webhook, row)
    const durationMs = Math.round(clock.monotonic() - startedAt)
    const outcome = { state: succeeded ? 'delivered' : 'failed', nextAt: null, status, error } as const
    await recordAttempt(write, row, outcome)
    const result = { state: outcome.state, attempt: 1, next_at: null, last_status: status, last_error: error }
    return { ...row, ...result, durationMs }
  }

  async close(): Promise<void> {
    this.isClosed = true
    for (const timer of this.timers) clearInterval(timer)
    await this.claiming
    // Ends the running attempts; another process or the next start retries them after their claims end.
    await this.deps.sender.close()
    await Promise.all(this.running.keys())
  }

  private poll(): void {
    this.claim().catch((error) =>
      this.deps.log.warn({ err: error }, 'could not read webhook deliveries; will retry'),
    )
  }

  private claim(): Promise<void> {
    this.claiming ??= this.claimDue().finally(() => {
      this.claiming = undefined
    })
    return this.claiming
  }

  private async claimDue(): Promise<void> {
    const { clock, storage } = this.deps
    await this.relay()
    const limit = MAX_ATTEMPTS - this.running.size
    if (this.isClosed || limit <= 0) return
    const opened = await storage.find()
    const nowSeconds = unixSeconds(clock)
    if (opened === undefined || !(await isAnyDue(opened, nowSeconds))) return
    const counts = Map.groupBy(this.running.values(), (id) => id)
    const busy = [...counts].filter(([, all]) => all.length >= MAX_ATTEMPTS_EACH).map(([id]) => id)
    const claim = { nowSeconds, until: nowSeconds + CLAIM_SECONDS, limit, limitEach: MAX_ATTEMPTS_EACH, busy }
    const rows = await opened.write.transaction().execute((trx) => claimDeliveries(trx, claim))
    for (const row of rows) {
      const attempt = this.attempt(opened, row)
        .catch((error) => this.deps.log.warn({ err: error }, 'could not record a webhook delivery'))
        .then(() => void this.running.delete(attempt))
        .then(() => this.poll())
      this.running.set(attempt, row.webhook_id)
    }
  }

  private async attempt({ write }: ConversationDatabase, row: DeliveryRow): Promise<void> {
    const { db, sender, config, operator } = this.deps
    const operators = operator.find(row.webhook_id)
    const webhook = operators ?? (await findWebhookRow(db, row.webhook_id))
    if (webhook === undefined) return deleteDeliveriesOf(write, [row.webhook_id])
    if (operators === undefined && !config.webhooks.isAllowed)
      return failPending(write, webhook.id, 'This server does not allow webhooks.')
    if ('state' in webhook && webhook.state === 'disabled')
      return failPending(write, webhook.id, 'The webhook is disabled.')
    const sent = await sender.send(webhook, row)
    // A shutdown ends attempts; another process or the next start retries them.
    if (this.isClosed && sent.status === null) return
    const outcome = this.toOutcome(row, sent)
    if (!(await recordAttempt(write, row, outcome))) return
    this.deps.metrics.webhookAttempted(outcome.state === 'pending' ? 'retried' : outcome.state)
    // The operator's webhooks are enabled as long as they are in the configuration.
    if (!('state' in webhook)) return
    if (sent.succeeded) return markWorking(db, webhook.id)
    await this.onFailed(write, webhook, sent)
  }

  /** A failure delays only other modules' events. */
  private async relay(): Promise<void> {
    const { relay, log } = this.deps
    await relay?.run().catch((error) => {
      if (!this.isClosed) log.warn({ err: error }, 'could not hand events over to webhooks; will retry')
    })
  }

  private toOutcome({ attempt }: DeliveryRow, { succeeded, status, error, retryAfter }: Sent): Outcome {
    if (succeeded) return { state: 'delivered', nextAt: null, status, error }
    const wait = secondsUntilNext(attempt + 1, retryAfter, this.deps.random)
    if (wait === undefined) return { state: 'failed', nextAt: null, status, error }
    return { state: 'pending', nextAt: unixSeconds(this.deps.clock) + wait, status, error }
  }

  /** Disables a webhook that has failed for five days, or whose receiver responds with 410. */
  private async onFailed(
    write: ConversationDatabase['write'],
    { id }: WebhookRow,
    { status }: Sent,
  ): Promise<void> {
    const { db, clock, log, directory } = this.deps
    const nowSeconds = unixSeconds(clock)
    const since = await markFailing(db, id, nowSeconds)
    const reason = status === 410 ? 'gone' : nowSeconds - since >= FAILING_SECONDS ? 'failing' : undefined
    if (reason === undefined) return
    await updateWebhookRow(db, id, { state: 'disabled', disabled_reason: reason, updated_at: nowSeconds })
    directory.invalidate()
    await failPending(write, id, 'The webhook was disabled.')
    log.warn({ webhookId: id, reason }, 'disabled a webhook')
  }

  private async clean(): Promise<void> {
    const { storage, clock, log } = this.deps
    try {
      const opened = await storage.find()
      const before = unixSeconds(clock) - KEEP_SECONDS
      while (opened !== undefined && !this.isClosed) {
        const count = await opened.write
          .transaction()
          .execute((trx) => deleteOldDeliveries(trx, before, BATCH))
        if (count < BATCH) return
      }
    } catch (error) {
      if (!this.isClosed) log.warn({ err: error }, 'could not delete old webhook deliveries')
    }
  }
}

/** Reads before it writes, because usually nothing is due. */
async function isAnyDue({ read }: ConversationDatabase, nowSeconds: number): Promise<boolean> {
  const row = await read
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('next_at', '<=', nowSeconds)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
