/** Starts, finds, follows and ends stored turns. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import type { ConversationStorage } from '../db/open.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { within } from '../lib/timeout.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import type { Dependencies } from './dependencies.ts'
import { deriveCapability } from './events.ts'
import { toStoreFailure } from './failures.ts'
import { ConversationReader } from './reader.ts'
import {
  deleteAgentConversations,
  type FindAgentRetention,
  startConversationMaintenance,
} from './retention/maintenance.ts'
import { deleteConversationRows, moveConversations } from './retention/rows.ts'
import {
  deleteTurn,
  listAbandonedTurns,
  listRunningTurns,
  readEvents,
  requestCancel,
  sumTenantBytes,
  type TurnRow,
} from './store.ts'
import { acceptTurn, type TurnPlan } from './turns/acceptance.ts'
import { StoreBacklog } from './turns/log.ts'
import { endAbandoned } from './turns/procedures.ts'
import { type RunModel, RunningTurn } from './turns/running-turn.ts'
import { entriesOf, type LogEntry, type LogRun } from './turns/segments.ts'
import { StoredLogs } from './turns/stored-logs.ts'
import { TurnWriter } from './turns/writer.ts'

export {
  deleteAgentConversations,
  type FindAgentRetention,
  maintainConversations,
} from './retention/maintenance.ts'
export type { TurnRow } from './store.ts'
export { conversationLocked, digestOf, type TurnPlan } from './turns/acceptance.ts'
export type { TurnReports } from './turns/running-turn.ts'
export type { LogEntry, LogRun } from './turns/segments.ts'

const ID_LENGTH = 24
const OWNER_LENGTH = 16
const QUOTA_CACHED_MS = 10_000
const SWEEP_EVERY_MS = 5_000
const CLOSE_MS = 10_000

/** A turn that this process has started; `capability` begins the ids of its events. */
export interface StartedTurn {
  readonly id: string
  readonly conversationId: string
  readonly capability: string
  /** Unix seconds. */
  readonly createdAt: number
  /** False when the store has failed: the turn runs, but nothing of it is stored. */
  readonly isStored: Promise<boolean>
  read(from: number, signal?: AbortSignal): AsyncGenerator<LogEntry, void, void>
  /** Like `read`, in batches, which cost less. */
  readRuns(from: number, signal?: AbortSignal): AsyncGenerator<readonly LogRun[], void, void>
}

/** Runs stored turns, and finds, follows and stops those that any process runs. */
export class Conversations {
  readonly reader: ConversationReader
  readonly storage: ConversationStorage
  private readonly deps: Dependencies
  private readonly capabilityKey: KeyObject
  /** Identifies this process, and changes with each start. */
  private readonly owner: string
  private readonly running = new Map<string, RunningTurn>()
  private readonly stored: StoredLogs
  private readonly usedBytes: ReturnType<typeof createTtlCache<UsedBytes>>
  private readonly writer: TurnWriter
  private readonly backlog = new StoreBacklog()
  private readonly sweeping: NodeJS.Timeout
  private stopMaintenance = async () => {}
  private isClosed = false

  constructor(deps: Dependencies) {
    const { clock, random, bus, config } = deps
    this.deps = deps
    this.owner = newId('', OWNER_LENGTH, random)
    this.capabilityKey = createSecretKey(deps.capabilityKey)
    this.storage = deps.storage
    this.reader = new ConversationReader(deps)
    this.stored = new StoredLogs(deps.storage)
    this.usedBytes = createTtlCache<UsedBytes>(clock, { max: 1_000, keepMs: () => QUOTA_CACHED_MS })
    this.writer = new TurnWriter({
      ...deps,
      owner: this.owner,
      flushMs: config.conversations.flushMs,
      onStored(ids) {
        if (bus.reachesOthers) for (const id of ids) bus.publish('turn', id)
      },
    })
    bus.subscribe('turn', (id) => this.stored.wake(id))
    bus.subscribe('cancel-turn', (id) => this.running.get(id)?.stop('cancelled'))
    bus.onGap(() => this.stored.wakeAll())
    this.sweeping = setInterval(() => void this.sweep(false), SWEEP_EVERY_MS).unref()
    void this.sweep(deps.isOnlyServer)
  }

  /** Starts a turn. The model starts immediately unless the turn depends on stored data. @throws ServiceError */
  async start(plan: TurnPlan, model: RunModel): Promise<StartedTurn> {
    const { clock, random, config } = this.deps
    const id = newId('turn_', ID_LENGTH, random)
    const conversationId =
      plan.conversationId ?? plan.previous?.conversation_id ?? newId('conv_', ID_LENGTH, random)
    const capability = this.capabilityOf(id)
    const createdAt = unixSeconds(clock)
    const continues = plan.isBackground || plan.onDisconnect === 'continue'
    const turn = new RunningTurn({
      id,
      isStream: plan.isStream,
      isBackground: plan.isBackground,
      lonelyMs: continues ? undefined : config.conversations.reconnectMs,
      clock,
      renderFailure: plan.renderFailure,
      backlog: this.backlog,
      onAppend: (isLarge) => this.writer.onAppend(id, isLarge),
      readStored: (from) => this.stored.read(id, from),
    })
    let used: UsedBytes | undefined
    const assertQuota = async (tenantId: string) => {
      used = await this.assertQuota(tenantId)
    }
    const accepting = acceptTurn({ ...this.deps, assertQuota }, plan, {
      id,
      conversationId,
      capability,
      owner: this.owner,
      nowSeconds: createdAt,
    })
    // Registered before its row is stored: a repeated request that finds the row follows the turn in this process.
    this.running.set(id, turn)
    if (needsStore(plan))
      await accepting.catch((error) => {
        this.running.delete(id)
        turn.discard()
        throw toStoreFailure(error)
      })
    void this.store(turn, accepting, plan.requestId)
    void this.finish(plan, turn, { conversationId, getUsed: () => used }, model)
    return {
      id,
      conversationId,
      capability,
      createdAt,
      isStored: turn.accepted.promise,
      read: (from, signal) => toEntries(turn.read(from, signal)),
      readRuns: (from, signal) => turn.read(from, signal),
    }
  }

  /** Follows a turn on any process from the entry `from` on. @throws ServiceError */
  follow(turn: TurnRow, from: number, signal?: AbortSignal): AsyncGenerator<LogEntry, void, void> {
    return toEntries(this.followRuns(turn, from, signal))
  }

  /** Like `follow`, in batches, which cost less. @throws ServiceError */
  followRuns(
    turn: TurnRow,
    from: number,
    signal?: AbortSignal,
  ): AsyncGenerator<readonly LogRun[], void, void> {
    return this.running.get(turn.id)?.read(from, signal) ?? this.stored.follow(turn, from, signal)
  }

  /** Returns the entries so far, without waiting for more. */
  async readSoFar(turn: TurnRow): Promise<readonly LogEntry[]> {
    const own = this.running.get(turn.id)
    if (own !== undefined) return (await own.readSoFar()).flatMap((run) => [...entriesOf(run)])
    const { read } = await this.storage.open()
    return (await readEvents(read, turn.id, 0)).flatMap((run) => [...entriesOf(run)])
  }

  /** Stops a turn. Resolves when the model has stopped, or when another process has been asked to stop it. */
  async cancel(turn: TurnRow): Promise<void> {
    const own = this.running.get(turn.id)
    if (own !== undefined) {
      own.stop('cancelled')
      await own.ended
      return
    }
    const { write } = await this.storage.open()
    await requestCancel(write, turn.id)
    this.deps.bus.publish('cancel-turn', turn.id)
  }

  async cancelTurnsOf(conversationId: string): Promise<void> {
    const { read } = await this.storage.open()
    const turns = await listRunningTurns(read, conversationId)
    await Promise.all(turns.map((turn) => this.cancel(turn)))
  }

  async deleteTurn(turn: TurnRow): Promise<void> {
    if (turn.status === 'in_progress') await this.cancel(turn)
    const { write } = await this.storage.open()
    await write.transaction().execute((trx) => deleteTurn(trx, turn))
  }

  /** Deletes a conversation with its turns, items and events; a running turn is cancelled first. */
  async deleteConversation(id: string): Promise<void> {
    await this.cancelTurnsOf(id)
    const { write, scrub } = await this.storage.open()
    await write.transaction().execute((trx) => deleteConversationRows(trx, [id]))
    await scrub()
    this.usedBytes.invalidate()
  }

  /** Deletes the conversations of a deleted agent. After a failure, maintenance deletes them. */
  async deleteOfAgent(tenantId: string, agentId: string): Promise<void> {
    try {
      const database = await this.storage.find()
      if (database === undefined) return
      await deleteAgentConversations(database, this.deps.clock, { tenant: tenantId, agentId })
      this.usedBytes.invalidate()
    } catch (error) {
      this.deps.log.warn({ err: error, agentId }, 'could not delete the conversations of a deleted agent yet')
    }
  }

  /** Moves all conversations to another tenant and returns their number. */
  async moveTenant(from: string, to: string): Promise<number> {
    const database = await this.storage.find()
    const moved = await database?.write.transaction().execute((trx) => moveConversations(trx, from, to))
    this.usedBytes.invalidate()
    return moved ?? 0
  }

  /** Deletes old data every ten minutes until `close`. */
  startMaintenance(findAgentRetention: FindAgentRetention, everyMs?: number): void {
    const onDeleted = () => this.usedBytes.invalidate()
    this.stopMaintenance = startConversationMaintenance(
      { ...this.deps, findAgentRetention, onDeleted },
      everyMs,
    )
  }

  health(): 'up' | 'down' {
    return this.writer.health
  }

  /** Ends the turns whose process has stopped. At the start of a single server, these are all running turns. */
  async sweep(isStart: boolean): Promise<void> {
    const { clock, log, bus } = this.deps
    try {
      const opened = await this.storage.find()
      if (opened === undefined || this.isClosed) return
      const owner = isStart ? this.owner : undefined
      for (const turn of await listAbandonedTurns(opened.read, unixSeconds(clock), owner)) {
        if (!(await opened.run(endAbandoned, { turn, owner: this.owner, nowSeconds: unixSeconds(clock) })))
          continue
        this.stored.wake(turn.id)
        bus.publish('turn', turn.id)
      }
    } catch (error) {
      log.warn({ err: error }, 'could not end the turns of a stopped process')
    }
  }

  /** Derived from the turn, so that every replica can name the turn's events when a client repeats its request. */
  capabilityOf(turnId: string): string {
    return deriveCapability(this.capabilityKey, turnId)
  }

  /** Stops all turns and stores what they have produced, if the store allows that in time. */
  async close(): Promise<void> {
    this.isClosed = true
    clearInterval(this.sweeping)
    await this.stopMaintenance()
    const turns = [...this.running.values()]
    for (const turn of turns) turn.stop('shutdown')
    await this.closeWithin('turns', Promise.all(turns.map(({ ended }) => ended)))
    await this.closeWithin('events', this.writer.close())
    await this.closeWithin('database', this.storage.close())
  }

  /** A store that is down must not keep the process running. What it has not stored is lost. */
  private async closeWithin(part: string, closing: Promise<unknown>): Promise<void> {
    const { log, closeMs = CLOSE_MS } = this.deps
    await within(closeMs, closing, () => log.warn({ part }, 'conversations were not closed in time'))
  }

  /** Hands a turn to the writer when its row is stored. */
  private async store(turn: RunningTurn, accepting: Promise<void>, requestId: string): Promise<void> {
    try {
      await accepting
    } catch (error) {
      this.deps.log.warn({ err: error, requestId }, 'could not store a turn; it runs unstored')
      turn.log.stopStoring()
      turn.accepted.resolve(false)
      return
    }
    this.writer.add({
      log: turn.log,
      onLost() {
        // Nothing more is stored, so the model must not wait for that.
        turn.log.stopStoring()
        turn.stop('lost')
      },
      onCancelRequested: () => turn.stop('cancelled'),
    })
    turn.accepted.resolve(true)
  }

  private async finish(
    plan: TurnPlan,
    turn: RunningTurn,
    {
      conversationId,
      getUsed,
    }: { readonly conversationId: string; readonly getUsed: () => UsedBytes | undefined },
    model: RunModel,
  ): Promise<void> {
    const { failure, ...end } = await turn.run(model)
    const isStored = await turn.accepted.promise
    // The cached sum does not contain this turn.
    const used = getUsed()
    if (used !== undefined) used.bytes += sizeOf(plan) + turn.log.bytes
    if (isStored && end.stopped !== 'lost')
      await this.writer.end(turn.id, {
        ...end,
        conversationId,
        failureCode: failure?.code,
        keepSeconds: plan.keepSeconds,
        nowSeconds: unixSeconds(this.deps.clock),
      })
    // Readers return only now, so that a client that continues the turn finds its end.
    turn.log.end()
    this.running.delete(turn.id)
  }

  /** @throws ServiceError `storage_full` */
  async assertQuota(tenantId: string): Promise<UsedBytes | undefined> {
    const { maxBytes } = this.deps.config.conversations
    const opened = maxBytes === 0 ? undefined : await this.storage.find()
    if (opened === undefined) return undefined
    const used = await this.usedBytes.get(tenantId, async () => ({
      bytes: await sumTenantBytes(opened.read, tenantId),
    }))
    if (used.bytes < maxBytes) return used
    throw new ServiceError(
      'storage_full',
      `The stored conversations have reached the limit of ${maxBytes} bytes.`,
    )
  }
}

/** Number of bytes that a tenant has stored; grows with each turn while it is cached. */
interface UsedBytes {
  bytes: number
}

function sizeOf({ input }: TurnPlan): number {
  return input.reduce((sum, { body }) => sum + Buffer.byteLength(JSON.stringify(body)), 0)
}

async function* toEntries(batches: AsyncIterable<readonly LogRun[]>): AsyncGenerator<LogEntry, void, void> {
  for await (const runs of batches) for (const run of runs) yield* entriesOf(run)
}

/** Whether a turn cannot run unstored. */
function needsStore(plan: TurnPlan): boolean {
  return (
    plan.isBackground ||
    plan.conversationId !== undefined ||
    plan.previous !== undefined ||
    plan.idempotency !== undefined
  )
}
