/** Starts, finds, follows and ends stored turns. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import type { ConversationStorage } from '../db/open.ts'
import { unixSeconds } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { within } from '../lib/timeout.ts'
import { ReadAudit } from './admin/audit.ts'
import type { Dependencies } from './dependencies.ts'
import { deriveCapability } from './events.ts'
import { ConversationChanges } from './feed/changes.ts'
import { Handover } from './handover/handover.ts'
import { StoppedTurns } from './handover/stopped-turns.ts'
import { ItemData } from './inline-data/item-data.ts'
import { ConversationReader } from './reader.ts'
import { endAbandonedTurns } from './retention/abandoned.ts'
import { Deletions } from './retention/deletions.ts'
import {
  type FindAgentRetention,
  type MaintenanceDependencies,
  startConversationMaintenance,
} from './retention/maintenance.ts'
import { findTurn, listRunningTurns, readEvents, requestCancel, type TurnRow } from './store.ts'
import {
  acceptTurn,
  assertInputSize,
  inputSizeOf,
  KeyedStarts,
  needsStore,
  type TurnPlan,
} from './turns/acceptance.ts'
import { toStoreFailure } from './turns/failures.ts'
import { StoreBacklog } from './turns/log.ts'
import { StorageQuota, type UsedBytes } from './turns/quota.ts'
import { type RunModel, RunningTurn } from './turns/running-turn.ts'
import { entriesOf, type LogEntry, type LogRun, toEntries } from './turns/segments.ts'
import { StoreHealth, toUnstoredReason } from './turns/store-health.ts'
import { StoredLogs } from './turns/stored-logs.ts'
import { TurnWriter } from './turns/writer.ts'
import { prepareFailed } from './webhooks/events.ts'

export { recordExpiry } from './admin/audit.ts'
export { type ModeState, withoutAssignee, wrongMode } from './handover/errors.ts'
export {
  deleteAgentConversations,
  type FindAgentRetention,
  maintainConversations,
} from './retention/maintenance.ts'
export { countResume, type TurnRow } from './store.ts'
export { ConversationChanged, conversationLocked, digestOf, type TurnPlan } from './turns/acceptance.ts'
export { type RunModel, type TurnReports, TurnStopped } from './turns/running-turn.ts'
export type { LogEntry, LogRun } from './turns/segments.ts'

const ID_LENGTH = 24
const OWNER_LENGTH = 16
const SWEEP_EVERY_MS = 5_000
const CLOSE_MS = 10_000

/** A turn that this process has started; `capability` is the prefix of its event ids. */
export interface StartedTurn {
  readonly id: string
  readonly conversationId: string
  readonly capability: string
  /** Unix seconds. */
  readonly createdAt: number
  /** False if the turn could not be stored; it then continues without being stored. */
  readonly isStored: Promise<boolean>
  read(from: number, signal?: AbortSignal): AsyncGenerator<LogEntry, void, void>
  /** Like `read`, but yields batches, which is cheaper. */
  readRuns(from: number, signal?: AbortSignal): AsyncGenerator<readonly LogRun[], void, void>
}

/** Runs stored turns, and finds, follows and stops the turns of all processes. */
export class Conversations {
  readonly reader: ConversationReader
  readonly storage: ConversationStorage
  readonly data: ItemData
  readonly reads: ReadAudit
  readonly quota: StorageQuota
  readonly deletions: Deletions
  readonly handover: Handover
  readonly changes: ConversationChanges
  readonly keyedStarts = new KeyedStarts()
  private readonly deps: Dependencies
  private readonly capabilityKey: KeyObject
  /** Identifies this process, and changes with each start. */
  private readonly owner: string
  private readonly running = new Map<string, RunningTurn>()
  private readonly stoppedTurns: StoppedTurns
  private readonly stored: StoredLogs
  private readonly writer: TurnWriter
  private readonly backlog = new StoreBacklog()
  private readonly storeHealth: StoreHealth
  private readonly sweeping: NodeJS.Timeout
  private stopMaintenance = async () => {}
  private readonly closing = new AbortController()

  constructor(deps: Dependencies) {
    const { clock, random, bus, config } = deps
    this.deps = deps
    this.owner = newId('', OWNER_LENGTH, random)
    this.capabilityKey = createSecretKey(deps.capabilityKey)
    this.storage = deps.storage
    this.data = new ItemData(deps)
    this.reader = new ConversationReader({ ...deps, data: this.data })
    this.stored = new StoredLogs(deps)
    this.reads = new ReadAudit(clock)
    this.quota = new StorageQuota(deps)
    this.writer = new TurnWriter({
      ...deps,
      data: this.data,
      owner: this.owner,
      flushMs: config.conversations.flushMs,
      onFlushed: (durationMs) => deps.metrics.flushed(durationMs),
      onStored(ids) {
        if (bus.reachesOthers) for (const id of ids) bus.publish('turn', id)
      },
    })
    this.storeHealth = new StoreHealth({ ...deps, writer: this.writer })
    this.deletions = new Deletions({ ...deps, data: this.data, quota: this.quota })
    const { data, quota, running, writer } = this
    this.stoppedTurns = new StoppedTurns({ running, writer })
    this.changes = new ConversationChanges(deps)
    const notify = (id: string, ofTenant?: string) => this.notify(id, ofTenant)
    this.handover = new Handover({ ...deps, data, quota, stoppedTurns: this.stoppedTurns, notify })
    bus.subscribe('turn', (id) => this.stored.wake(id))
    bus.subscribe('cancel-turn', (id) => this.running.get(id)?.stop('cancelled'))
    bus.subscribe('read-turn', (id) => this.running.get(id)?.onAnnounced())
    bus.onGap(() => this.stored.wakeAll())
    this.sweeping = setInterval(() => void this.sweep(false), SWEEP_EVERY_MS).unref()
    void this.sweep(deps.isOnlyServer)
  }

  /** Starts a turn. The model waits for the store only if the turn must be stored. @throws ServiceError */
  async start(plan: TurnPlan, model: RunModel): Promise<StartedTurn> {
    const { clock, random, config } = this.deps
    assertInputSize(plan)
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
      toolData: plan.toolData,
      data: this.data,
      conversationId,
      mayContinue: () => this.handover.mayContinue(plan.tenantId, id),
      requestPerson: (reason) =>
        this.handover.requestByModel({ tenantId: plan.tenantId, conversationId }, reason),
      reconnectMs: continues ? undefined : config.conversations.reconnectMs,
      findLastRead: () => this.findLastRead(plan.tenantId, id),
      clock,
      renderFailure: plan.renderFailure,
      backlog: this.backlog,
      onAppend: (isLarge) => this.writer.onAppend(id, isLarge),
      readStored: (from) => this.stored.read(id, from),
    })
    let used: UsedBytes | undefined
    const assertQuota = async (tenantId: string) => {
      used = await this.quota.assertRoom(tenantId)
    }
    const accepting = acceptTurn({ ...this.deps, data: this.data, assertQuota }, plan, {
      id,
      conversationId,
      capability,
      owner: this.owner,
      nowSeconds: createdAt,
    })
    this.storeHealth.observe(accepting)
    // Registers the turn first, because a repeated request that finds its row must also find the running
    // turn.
    this.running.set(id, turn)
    if (needsStore(plan))
      await accepting.catch((error) => {
        this.running.delete(id)
        turn.discard()
        throw toStoreFailure(error)
      })
    void this.store(turn, accepting, plan.requestId).then(() => this.notify(conversationId, plan.tenantId))
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

  /** Follows a turn that any process runs, starting at entry `from`. @throws ServiceError */
  follow(turn: TurnRow, from: number, signal?: AbortSignal): AsyncGenerator<LogEntry, void, void> {
    return toEntries(this.followRuns(turn, from, signal))
  }

  /** Like `follow`, but yields batches, which is cheaper. @throws ServiceError */
  followRuns(
    turn: TurnRow,
    from: number,
    signal?: AbortSignal,
  ): AsyncGenerator<readonly LogRun[], void, void> {
    return this.running.get(turn.id)?.read(from, signal) ?? this.stored.follow(turn, from, signal)
  }

  private async findLastRead(tenantId: string, turnId: string): Promise<number | undefined> {
    if (!this.deps.bus.reachesOthers) return undefined
    const { read } = await this.storage.open()
    return (await findTurn(read, tenantId, 'id', turnId))?.read_at ?? undefined
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
    await this.deletions.deleteTurn(turn)
  }

  /** Cancels the running turns of a conversation, then deletes it with its turns, items and events. */
  async deleteConversation(id: string, ofTenant: string): Promise<void> {
    await this.cancelTurnsOf(id)
    await this.deletions.deleteConversation(id)
    this.notify(id, ofTenant)
  }

  /** Deletes old data every ten minutes until `close`. */
  startMaintenance(
    findAgentRetention: FindAgentRetention,
    onExpired: NonNullable<MaintenanceDependencies['onExpired']>,
  ): void {
    const onDeleted = () => this.quota.forget()
    const deps = { ...this.deps, data: this.data, findAgentRetention, onDeleted, onExpired }
    this.stopMaintenance = startConversationMaintenance(deps)
  }

  /** Reports whether turns can be stored; after a failure, tests this with a write to the store. */
  checkStore(): Promise<'up' | 'down'> {
    return this.storeHealth.check()
  }

  readState() {
    const waiting = { events: 0, bytes: 0 }
    for (const { log } of this.running.values()) {
      waiting.events += log.waitingSize.events
      waiting.bytes += log.waitingSize.bytes
    }
    return { running: this.running.size, waiting, isStoreUp: this.storeHealth.isUp }
  }

  /**
   * Ends the turns whose process has stopped, and the waits for a person that have taken too long. At the
   * start of the only server, ends all running turns, because no process runs them.
   */
  async sweep(isStart: boolean): Promise<void> {
    const { clock, log, metrics } = this.deps
    if (this.closing.signal.aborted) return
    const sweeper = { owner: this.owner, isOnly: isStart, nowSeconds: unixSeconds(clock) }
    try {
      await endAbandonedTurns(this.storage, sweeper, (turn) => {
        metrics.turnEnded('incomplete')
        this.notify(turn.id)
        this.notify(turn.conversation_id, turn.tenant)
      })
      await this.handover.endWaits()
    } catch (error) {
      log.warn({ err: error }, 'could not end abandoned turns or overdue waits for a person')
    }
  }

  /** Derived from the turn's id, so that every replica uses the same event ids for a repeated request. */
  capabilityOf(turnId: string): string {
    return deriveCapability(this.capabilityKey, turnId)
  }

  /** Stops all turns and stores what they have produced, if the store allows that in time. */
  async close(): Promise<void> {
    this.closing.abort()
    clearInterval(this.sweeping)
    await this.stopMaintenance()
    const turns = [...this.running.values()]
    for (const turn of turns) turn.stop('shutdown')
    await this.closeWithin('turns', Promise.all(turns.map(({ ended }) => ended)))
    await this.closeWithin('events', this.writer.close())
    await this.closeWithin('database', this.storage.close())
  }

  /**
   * Limits the wait, because a store that is down must not keep the process running; unstored data is lost.
   */
  private async closeWithin(part: string, closing: Promise<unknown>): Promise<void> {
    const { log, closeMs = CLOSE_MS } = this.deps
    await within(closeMs, closing, () =>
      log.warn({ part }, 'the conversation store did not shut down in time'),
    )
  }

  /** Hands a turn to the writer once its row is stored. */
  private async store(turn: RunningTurn, accepting: Promise<void>, requestId: string): Promise<void> {
    try {
      await accepting
    } catch (error) {
      this.deps.log.warn({ err: error, requestId }, 'could not store a turn; it continues unstored')
      this.deps.metrics.turnUnstored(toUnstoredReason(error))
      turn.log.stopStoring()
      turn.accepted.resolve(false)
      return
    }
    this.writer.add({
      log: turn.log,
      onLost() {
        // Nothing more will be stored, so the model must not wait for the store.
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
    // The cached sum does not include this turn.
    getUsed()?.add(inputSizeOf(plan) + turn.log.bytes)
    const about = { ...plan, conversationId, turnId: turn.id }
    if (await this.stoppedTurns.hasStored(turn.id)) this.deps.metrics.turnEnded('cancelled')
    else if (isStored && end.stopped !== 'lost') {
      const status = await this.writer.end(turn.id, {
        ...end,
        conversationId,
        failureCode: failure?.code,
        keepSeconds: plan.keepSeconds,
        nowSeconds: unixSeconds(this.deps.clock),
        deliveries: await prepareFailed(this.deps, about, failure, this.closing.signal),
      })
      if (status !== undefined) this.deps.metrics.turnEnded(status)
    }
    // Releases the readers only now, so that a client that then continues the turn finds its stored end.
    turn.log.end()
    this.running.delete(turn.id)
    turn.finished.resolve()
    this.notify(conversationId, plan.tenantId)
  }

  /**
   * Wakes everything waiting for this turn, conversation or tenant on every replica, and this process's
   * webhook deliverer. `ofTenant` owns the conversation that has changed.
   */
  notify(id: string, ofTenant?: string): void {
    if (ofTenant !== undefined) this.changes.publish(ofTenant, id)
    this.stored.wake(id)
    this.deps.webhooks?.wake()
    if (this.deps.bus.reachesOthers) this.deps.bus.publish('turn', id)
  }

  /**
   * Returns a promise that resolves when the turn, conversation or tenant may have changed, after `mostMs`,
   * or when the signal aborts. `cancel` ends the wait.
   */
  waitForChange(id: string, signal: AbortSignal | undefined, mostMs?: number) {
    return this.stored.waitForChange(id, signal, mostMs)
  }
}
