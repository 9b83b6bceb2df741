/** Deletes expired data, and updates conversations after changes to their agents. */
import type { ConversationDatabase, ConversationDb, ConversationStorage } from '../../db/open.ts'
import { createDeletionTime } from '../../lib/clock.ts'
import type { Dependencies } from '../dependencies.ts'
import type { ItemData } from '../inline-data/item-data.ts'
import { IDEMPOTENCY_SECONDS } from '../turns/acceptance.ts'
import { prepareDeletion } from '../webhooks/events.ts'
import {
  applyKeepTime,
  clearIdempotencyKeys,
  type Doomed,
  deleteConversations,
  deleteEventLogs,
  deleteVisitors,
  listAgentsOfConversations,
  moveConversations,
} from './rows.ts'

const MAINTAIN_EVERY_MS = 600_000
const BATCH = 200
/** Pause between batches, so that running turns can be stored. */
const PAUSE_MS = 20
const DAY_SECONDS = 86_400
/**
 * Lifetime of an anonymous visitor's token. A visitor without conversations is deleted this long after the
 * last activity.
 */
const VISITOR_SECONDS = 30 * DAY_SECONDS

/**
 * An agent's tenant and retention time. The time is undefined if the agent no longer stores conversations.
 */
export interface AgentRetention {
  readonly tenantId: string
  readonly keepSeconds: number | undefined
}

/**
 * Returns the retention of existing agents, and `deleted` for deleted ones; omits ids that the main database
 * does not contain.
 */
export type FindAgentRetention = (
  ids: readonly string[],
) => Promise<ReadonlyMap<string, AgentRetention | 'deleted'>>

export type MaintenanceDependencies = Pick<
  Dependencies,
  'config' | 'clock' | 'log' | 'webhooks' | 'forgetSpending'
> & {
  readonly storage: ConversationStorage
  readonly data: ItemData
  readonly findAgentRetention: FindAgentRetention
  readonly onDeleted?: () => void
  /** Called after a run with the number of expired conversations that it deleted, by tenant. */
  readonly onExpired?: (counts: ReadonlyMap<string, number>) => Promise<void>
}

interface Maintained {
  readonly conversations: number
  readonly eventLogs: number
  readonly idempotencyKeys: number
}

/** Runs now and every ten minutes; the returned function stops it and waits for the current run. */
export function startConversationMaintenance(
  deps: MaintenanceDependencies,
  everyMs = MAINTAIN_EVERY_MS,
): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const readDeletionTime = createDeletionTime(deps.clock, (seconds) =>
    deps.log.warn(
      { seconds },
      'the clock jumped ahead; conversations that expired only because of the jump will not be deleted for a day',
    ),
  )
  let running = Promise.resolve()
  async function run(): Promise<void> {
    if (signal.aborted) return
    try {
      await maintainConversations(deps, signal, Math.floor(readDeletionTime() / 1000))
    } catch (error) {
      if (!signal.aborted) deps.log.warn({ err: error }, 'could not delete old conversations')
    }
  }
  const runNext = () => {
    running = running.then(run)
  }
  runNext()
  const timer = setInterval(runNext, everyMs).unref()
  return () => {
    clearInterval(timer)
    stopping.abort()
    return running
  }
}

/**
 * Runs once, in small transactions. If two replicas run it at the same time, their transactions run one after
 * another.
 */
export async function maintainConversations(
  deps: MaintenanceDependencies,
  signal?: AbortSignal,
  nowSeconds: number = Math.floor(deps.clock.now() / 1000),
): Promise<Maintained> {
  const database = await deps.storage.find()
  if (database === undefined) return { conversations: 0, eventLogs: 0, idempotencyKeys: 0 }
  const batches = new Batches(database, deps, signal)
  const orphans = await applyAgents(deps, database, batches)
  const expired = await batches.deleteByTenant({ expiredBefore: nowSeconds }, deps.forgetSpending)
  const idempotencyKeys = await batches.run((trx) =>
    clearIdempotencyKeys(trx, nowSeconds - IDEMPOTENCY_SECONDS, BATCH),
  )
  const { replaySeconds } = deps.config.conversations
  const eventLogs = await batches.run((trx) => deleteEventLogs(trx, nowSeconds - replaySeconds, BATCH))
  await batches.run(async (trx) => {
    const ids = await deleteVisitors(trx, nowSeconds - VISITOR_SECONDS, BATCH)
    await deps.forgetSpending('visitor', ids)
    return ids.length
  })
  const conversations = [...expired.values()].reduce((sum, count) => sum + count, orphans)
  if (conversations > 0) deps.onDeleted?.()
  if (expired.size > 0) await deps.onExpired?.(expired)
  await deps.data.dropDeleted()
  // Runs even if nothing was deleted, because the write-ahead log may contain rows that were deleted earlier.
  await database.scrub()
  await database.vacuum(conversations + eventLogs > 0, signal)
  return { conversations, eventLogs, idempotencyKeys }
}

export async function deleteAgentConversations(
  database: ConversationDatabase,
  { data, ...deps }: BatchDependencies & { readonly data: ItemData },
  doomed: { readonly tenant: string; readonly agentId: string },
): Promise<number> {
  const count = await new Batches(database, deps, undefined).delete(doomed)
  await data.dropDeleted()
  await database.scrub()
  return count
}

type BatchDependencies = Pick<Dependencies, 'clock' | 'webhooks'>

/** Repeats a change of up to 200 rows until none are left. */
class Batches {
  private readonly database: ConversationDatabase
  private readonly deps: BatchDependencies
  private readonly signal: AbortSignal | undefined

  constructor(database: ConversationDatabase, deps: BatchDependencies, signal: AbortSignal | undefined) {
    this.database = database
    this.deps = deps
    this.signal = signal
  }

  async delete(doomed: Doomed): Promise<number> {
    const deletion = await prepareDeletion(this.deps.webhooks, 'agent_deleted')
    return this.run(async (trx) => (await deleteConversations(trx, doomed, BATCH, deletion)).length)
  }

  /** Deletes expired conversations; returns their number by tenant. */
  async deleteByTenant(
    doomed: Doomed,
    forgetSpending: Dependencies['forgetSpending'],
  ): Promise<Map<string, number>> {
    const deletion = await prepareDeletion(this.deps.webhooks, 'expired')
    const counts = new Map<string, number>()
    await this.run(async (trx) => {
      const rows = await deleteConversations(trx, doomed, BATCH, deletion)
      const ids = rows.map(({ id }) => id)
      // Before the commit, so that a failure repeats the deletion.
      await forgetSpending('conversation', ids)
      for (const { tenant } of rows) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
      return rows.length
    })
    return counts
  }

  async run(change: (trx: ConversationDb) => Promise<number>): Promise<number> {
    const { write, lockMaintenance } = this.database
    for (let sum = 0; ; ) {
      const count = await write.transaction().execute(async (trx) => {
        await lockMaintenance(trx)
        return change(trx)
      })
      sum += count
      if (count < BATCH || this.signal?.aborted) return sum
      await this.deps.clock.wait(PAUSE_MS, this.signal)
    }
  }
}

/**
 * Moves conversations to their agent's current tenant, applies the agent's retention time, and deletes the
 * conversations of deleted agents. Returns the number of deleted conversations. With SQLite, agents are
 * stored in another file, so a process may stop after it has changed an agent but not its conversations.
 */
async function applyAgents(
  { config, findAgentRetention }: MaintenanceDependencies,
  { read }: ConversationDatabase,
  batches: Batches,
): Promise<number> {
  const maxSeconds = config.conversations.maxDays * DAY_SECONDS
  let deleted = 0
  for (let last: { tenant: string; agent_id: string } | undefined; ; ) {
    const page = await listAgentsOfConversations(read, last, BATCH)
    const agents = await findAgentRetention(page.map(({ agent_id }) => agent_id))
    for (const { tenant, agent_id: agentId } of page) {
      const agent = agents.get(agentId)
      // The main database may be older than the conversations, for example after a restore (ADR 0052).
      if (agent === undefined) continue
      if (agent === 'deleted') {
        deleted += await batches.delete({ tenant, agentId })
        continue
      }
      const { tenantId, keepSeconds } = agent
      if (tenantId !== tenant)
        await batches.run(async (trx) => {
          await moveConversations(trx, tenant, tenantId, agentId)
          return 0
        })
      if (keepSeconds === undefined) continue
      const kept = { tenant: tenantId, agentId, keepSeconds: Math.min(keepSeconds, maxSeconds) }
      await batches.run((trx) => applyKeepTime(trx, kept, BATCH))
    }
    if (page.length < BATCH) return deleted
    last = page.at(-1)
  }
}
