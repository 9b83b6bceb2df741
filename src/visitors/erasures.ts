/** Erases visitors: cancels their turns, deletes all their data, and keeps a receipt. */
import type { Logger } from 'pino'
import type { ForgetSpending } from '../budgets/subjects.ts'
import {
  claimErasure,
  deleteVisitor,
  type ErasureRow,
  eraseConversations,
  findErasure,
  findErasureOf,
  findVisitor,
  finishErasure,
  insertErasure,
  listConversationIds,
  listUnfinishedErasures,
  noCounts,
  prepareDeletion,
} from '../conversations/operator.ts'
import type { ConversationDatabase, ConversationStorage } from '../db/open.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import type { EventPublisher } from '../webhooks/dependencies.ts'

const ID_LENGTH = 24
const BATCH = 50
/** The time after which another process continues an erasure. */
const LEASE_SECONDS = 60
const RESUME_EVERY_MS = 30_000
/** Longer than any transaction that began before the erasure was stored. */
const LAST_WRITES_MS = 2_000
const SCRUB_TRIES = 20
const SCRUB_AGAIN_MS = 250

export interface ErasureDeps extends AuditDeps {
  readonly storage: ConversationStorage
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  readonly webhooks?: EventPublisher | undefined
  /** Deletes what budgets have counted for the visitor and the conversations. */
  readonly forgetSpending: ForgetSpending
  /** Deletes the blobs of deleted items. */
  readonly dropDeleted: () => Promise<unknown>
  /** Deletes the visitor's uploads, also those that are in no message. */
  readonly deleteUploadsOf: (visitor: {
    readonly tenantId: string
    readonly visitorId: string
  }) => Promise<void>
  /**
   * Cancels the conversation's running turns. Undefined in a CLI command, because servers cancel the turns of
   * a deleted conversation themselves.
   */
  readonly cancelTurnsOf?: (conversationId: string) => Promise<void>
  readonly onErased?: () => void
}

export class Erasures {
  private readonly deps: ErasureDeps
  private readonly running = new Map<string, Promise<void>>()
  private timer: NodeJS.Timeout | undefined
  private readonly stopping = new AbortController()

  constructor(deps: ErasureDeps) {
    this.deps = deps
  }

  /** Continues the erasures of stopped processes, now and every 30 seconds, until `close`. */
  start(): void {
    const resume = () =>
      this.resume().catch((error) =>
        this.deps.log.warn({ err: error }, 'could not continue erasures; will retry'),
      )
    this.timer = setInterval(resume, RESUME_EVERY_MS).unref()
    void resume()
  }

  /**
   * Stores the erasure of a visitor and begins it. The visitor's tokens are invalid at once. Returns an
   * earlier erasure instead if it is running or has deleted the visitor.
   * @throws ServiceError `not_found`
   */
  async begin(actor: Actor, tenantId: string, visitorId: string): Promise<ErasureRow> {
    const opened = await this.deps.storage.find()
    const visitor = opened && (await findVisitor(opened.read, visitorId, tenantId))
    const earlier = opened && (await findErasureOf(opened.read, tenantId, visitorId))
    if (earlier !== undefined && (visitor === undefined || earlier.status === 'running')) return earlier
    if (opened === undefined || visitor === undefined)
      throw new ServiceError('not_found', `Visitor with id '${visitorId}' not found.`, {
        param: 'visitor_id',
      })
    const agentId = visitor.kind === 'anonymous' ? visitor.issuer : ''
    return this.insert(opened, actor, { tenantId, visitorId, agentId })
  }

  /** Erases a visitor of any tenant, even if the visitor's row is missing, and waits for the end. */
  async erase(
    actor: Actor,
    visitor: Pick<ErasureRow, 'tenant' | 'visitor_id' | 'agent_id'>,
  ): Promise<ErasureRow> {
    const opened = await this.deps.storage.open()
    const { tenant: tenantId, visitor_id: visitorId, agent_id: agentId } = visitor
    const { id } = await this.insert(opened, actor, { tenantId, visitorId, agentId })
    await this.running.get(id)
    return this.get(tenantId, id)
  }

  /** @throws ServiceError `not_found` */
  async get(tenantId: string, id: string): Promise<ErasureRow> {
    const opened = await this.deps.storage.find()
    const row = opened && (await findErasure(opened.read, tenantId, id))
    if (row !== undefined) return row
    throw new ServiceError('not_found', `Erasure with id '${id}' not found.`, { param: 'erasure_id' })
  }

  /** Continues the erasures that no process runs, and waits for their end. */
  async resume(): Promise<void> {
    const opened = await this.deps.storage.find()
    if (opened === undefined) return
    const nowSeconds = unixSeconds(this.deps.clock)
    for (const row of await listUnfinishedErasures(opened.read, nowSeconds)) {
      if (this.running.has(row.id)) continue
      if (await claimErasure(opened.write, row, nowSeconds + LEASE_SECONDS)) await this.run(opened, row)
    }
  }

  /** Stops after the current batch; the next start continues. */
  async close(): Promise<void> {
    clearInterval(this.timer)
    this.stopping.abort()
    await Promise.all(this.running.values())
  }

  private async insert(
    opened: ConversationDatabase,
    actor: Actor,
    about: { readonly tenantId: string; readonly visitorId: string; readonly agentId: string },
  ): Promise<ErasureRow> {
    const { clock, random } = this.deps
    const { tenantId, visitorId, agentId } = about
    const id = newId('erase_', ID_LENGTH, random)
    // Records the erasure before it begins, because with SQLite the audit log is in another file and cannot
    // share a transaction with it.
    await recordAudit(this.deps, actor, {
      action: 'visitor.erase',
      target: { kind: 'visitor', id: visitorId },
      tenantId,
      details: { erasure_id: id, agent_id: agentId || null },
    })
    const startedAt = unixSeconds(clock)
    const row: ErasureRow = {
      ...{ id, tenant: tenantId, visitor_id: visitorId, agent_id: agentId, requested_by: actor.name },
      ...{ status: 'running', counts: JSON.stringify(noCounts), conversations: '[]', digest: null },
      ...{ lease_until: startedAt + LEASE_SECONDS, started_at: startedAt, finished_at: null },
    }
    await insertErasure(opened.write, row)
    void this.run(opened, row)
    return row
  }

  private run(opened: ConversationDatabase, row: ErasureRow): Promise<void> {
    const running = this.eraseAll(opened, row)
      .catch((error) => {
        if (!this.stopping.signal.aborted)
          this.deps.log.warn({ err: error, erasureId: row.id }, 'could not finish an erasure; will retry')
      })
      .finally(() => this.running.delete(row.id))
    this.running.set(row.id, running)
    return running
  }

  private async eraseAll(opened: ConversationDatabase, row: ErasureRow): Promise<void> {
    const { clock, webhooks, dropDeleted, deleteUploadsOf, onErased } = this.deps
    const { signal } = this.stopping
    await this.deleteConversations(opened, row)
    // A turn that another process was storing when the erasure began may have been stored after the deletion.
    await clock.wait(LAST_WRITES_MS, signal)
    await this.deleteConversations(opened, row)
    await this.deps.forgetSpending('visitor', [row.visitor_id])
    await deleteVisitor(opened.write, row)
    await dropDeleted()
    await deleteUploadsOf({ tenantId: row.tenant, visitorId: row.visitor_id })
    await this.scrub(opened)
    await opened.vacuum(true, signal)
    const subscribers = await webhooks?.find()
    const { id, tenant, agent_id: agentId, visitor_id: visitorId } = row
    const event = { type: 'visitor.erased', tenantId: tenant, agentId, conversationId: undefined } as const
    const data = { visitor_id: visitorId, erasure_id: id }
    const deliveries = subscribers?.prepare({ ...event, data }) ?? []
    const end = { nowSeconds: unixSeconds(clock), deliveries }
    await opened.write.transaction().execute((trx) => finishErasure(trx, id, end))
    onErased?.()
    webhooks?.wake()
  }

  private async deleteConversations(opened: ConversationDatabase, row: ErasureRow): Promise<void> {
    const { cancelTurnsOf, clock, webhooks, forgetSpending } = this.deps
    for (;;) {
      this.stopping.signal.throwIfAborted()
      const ids = await listConversationIds(opened.write, row, BATCH)
      if (ids.length === 0) return
      await Promise.all(ids.map((id) => cancelTurnsOf?.(id)))
      const deletion = await prepareDeletion(webhooks, 'visitor_erased')
      const batch = { ids, deletion, until: unixSeconds(clock) + LEASE_SECONDS }
      await forgetSpending('conversation', ids)
      await opened.write.transaction().execute((trx) => eraseConversations(trx, row.id, batch))
    }
  }

  /**
   * Tries to empty SQLite's write-ahead log for five seconds, because a reader, such as a backup, can prevent
   * this.
   */
  private async scrub({ scrub }: ConversationDatabase): Promise<void> {
    for (let tries = 1; !(await scrub()) && tries < SCRUB_TRIES; tries++)
      await this.deps.clock.wait(SCRUB_AGAIN_MS, this.stopping.signal)
  }
}
