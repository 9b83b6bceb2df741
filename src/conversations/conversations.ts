/** Starts, finds, follows and ends stored turns. */
import { createHash, createHmac } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import type { ConversationDb, TurnStatus } from '../db/conversations.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import type { Dependencies } from './dependencies.ts'
import { type HistoryLimits, readChain, readConversation, type StoredItem } from './history.ts'
import { RunningTurn, type RunModel, type TurnEnd } from './running-turn.ts'
import type { LogEntry } from './segments.ts'
import {
  claimNumber,
  deleteTurn,
  endTurn,
  expireIdempotencyKey,
  findConversation,
  findItem,
  findLastTurn,
  findTurn,
  insertConversation,
  insertEvents,
  insertItems,
  insertTurn,
  listAbandonedTurns,
  listItemsOfTurns,
  listRunningTurns,
  type NewItem,
  readEvents,
  releaseConversation,
  sumTenantBytes,
  type TurnKey,
  type TurnRow,
} from './store.ts'
import { renderOutput, toEndEntry } from './turn-output.ts'
import { LEASE_SECONDS, TurnWriter } from './turn-writer.ts'

const ID_LENGTH = 24
const CAPABILITY_LENGTH = 22
const MAX_TURNS = 1_000
const MAX_ITEMS = 10_000
const MAX_INPUT_BYTES = 4 * 1024 * 1024
const SWEEP_EVERY_MS = 5_000
/** How often a reader looks for events of a turn that another process runs. */
const POLL_MS = 2_000
const IDEMPOTENCY_SECONDS = 24 * 3600
const TITLE_LENGTH = 80

export interface TurnPlan {
  readonly tenantId: string
  /** Empty for a turn without an agent. */
  readonly agentId: string
  readonly agentVersion: number | undefined
  /** Seconds after the last activity for which the conversation is stored. */
  readonly keepSeconds: number
  /** An existing conversation, in which no other turn may run; undefined: that of `previous`, or a new one. */
  readonly conversationId: string | undefined
  readonly previous: TurnRow | undefined
  readonly responseId: string | undefined
  readonly idempotency: { readonly digest: string; readonly requestDigest: string } | undefined
  readonly isStream: boolean
  readonly isBackground: boolean
  readonly onDisconnect: 'cancel' | 'continue'
  readonly kind: 'model' | 'continuation'
  /** The request without its input. */
  readonly request: object
  readonly input: readonly NewItem[]
  readonly metadata?: Readonly<Record<string, string>>
  readonly requestId: string
  readonly renderFailure: (failure: ServiceError) => Uint8Array
}

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
}

interface AcceptedAs {
  readonly id: string
  readonly conversationId: string
  readonly capability: string
  readonly nowSeconds: number
}

export type { TurnRow } from './store.ts'

export type Conversations = ReturnType<typeof createConversations>

export function createConversations(deps: Dependencies) {
  const { storage, clock, random, log, bus, config } = deps
  const settings = config.conversations
  const owner = newId('', 16, random)
  const running = new Map<string, RunningTurn>()
  const changes = new EventEmitter().setMaxListeners(0)
  const usedBytes = createTtlCache<number>(clock, { max: 1_000, keepMs: () => 10_000 })
  const writer = new TurnWriter({
    storage,
    clock,
    log,
    owner,
    flushMs: settings.flushMs,
    onStored: (ids) => {
      if (bus.reachesOthers) for (const id of ids) bus.publish('turn', id)
    },
  })
  bus.subscribe('turn', (id) => changes.emit(id))
  bus.subscribe('cancel-turn', (id) => running.get(id)?.stop('cancelled'))
  bus.onGap(() => {
    for (const id of changes.eventNames()) changes.emit(id)
  })
  let isClosed = false
  const sweeping = setInterval(() => void sweep(false), SWEEP_EVERY_MS).unref()

  /** Derived from the turn, so that every replica can name the events of a turn to a client that repeats a request. */
  function capabilityOf(turnId: string): string {
    const bytes = createHmac('sha512', deps.capabilityKey).update(turnId).digest()
    return newId('', CAPABILITY_LENGTH, (count) => bytes.subarray(0, count))
  }

  /** Starts a turn. The model runs at once unless the turn needs the store. @throws ServiceError */
  async function start(plan: TurnPlan, model: RunModel): Promise<StartedTurn> {
    const id = newId('turn_', ID_LENGTH, random)
    const conversationId =
      plan.conversationId ?? plan.previous?.conversation_id ?? newId('conv_', ID_LENGTH, random)
    const capability = capabilityOf(id)
    const turn = new RunningTurn({
      id,
      isStream: plan.isStream,
      lonelyMs: plan.isBackground || plan.onDisconnect === 'continue' ? undefined : settings.reconnectMs,
      clock,
      renderFailure: plan.renderFailure,
      onAppend: (isLarge) => writer.onAppend(id, isLarge),
    })
    const createdAt = unixSeconds(clock)
    const needsStore =
      plan.isBackground ||
      plan.conversationId !== undefined ||
      plan.previous !== undefined ||
      plan.idempotency !== undefined
    const accepting = accept(plan, { id, conversationId, capability, nowSeconds: createdAt })
    if (needsStore) await accepting
    running.set(id, turn)
    void accepting.then(
      () => {
        writer.add({
          log: turn.log,
          onLost: () => turn.stop('lost'),
          onCancelRequested: () => turn.stop('cancelled'),
        })
        turn.accepted.resolve(true)
      },
      (error) => {
        log.warn({ err: error, requestId: plan.requestId }, 'could not store a turn; it runs unstored')
        turn.log.stopStoring()
        turn.accepted.resolve(false)
      },
    )
    void finish(plan, turn, conversationId, model)
    return {
      id,
      conversationId,
      capability,
      createdAt,
      isStored: turn.accepted.promise,
      read: (from, signal) => turn.read(from, signal),
    }
  }

  async function accept(
    plan: TurnPlan,
    { id, conversationId, capability, nowSeconds }: AcceptedAs,
  ): Promise<void> {
    assertInputSize(plan.input)
    await assertQuota(plan.tenantId)
    const { write } = await storage.open()
    await write.transaction().execute(async (trx) => {
      if (plan.idempotency !== undefined)
        await expireIdempotencyKey(trx, plan.idempotency.digest, nowSeconds - IDEMPOTENCY_SECONDS)
      if (plan.conversationId === undefined && plan.previous === undefined)
        await insertConversation(trx, {
          id: conversationId,
          tenant: plan.tenantId,
          agent_id: plan.agentId,
          visitor_id: null,
          channel: 'api',
          mode_since: nowSeconds,
          assignee: null,
          busy_turn: null,
          title: titleOf(plan.input),
          metadata: JSON.stringify(plan.metadata ?? {}),
          cost_micros: null,
          created_at: nowSeconds,
          last_at: nowSeconds,
          position: deps.nextPosition(),
          expires_at: nowSeconds + plan.keepSeconds,
        })
      const lock = plan.conversationId !== undefined
      const claimed = await claimNumber(trx, {
        id: conversationId,
        turnId: id,
        agentId: plan.agentId,
        title: titleOf(plan.input),
        lock,
        nowSeconds,
      })
      if (claimed === undefined) throw await explainUnclaimed(trx, plan.tenantId, conversationId)
      if (claimed.number > MAX_TURNS || claimed.items + plan.input.length > MAX_ITEMS) throw full()
      await insertTurn(trx, {
        id,
        tenant: plan.tenantId,
        agent_id: plan.agentId,
        visitor_id: null,
        conversation_id: conversationId,
        number: claimed.number,
        previous_id: plan.previous?.id ?? null,
        response_id: plan.responseId ?? null,
        stream_digest: plan.isStream ? digestOf(capability) : null,
        idempotency_digest: plan.idempotency?.digest ?? null,
        request_digest: plan.idempotency?.requestDigest ?? null,
        kind: plan.kind,
        status: 'in_progress',
        reason: null,
        error_code: null,
        background: plan.isBackground ? 1 : 0,
        on_disconnect: plan.onDisconnect,
        owner,
        lease_until: nowSeconds + LEASE_SECONDS,
        agent_version: plan.agentVersion ?? null,
        provider: null,
        model: null,
        request: JSON.stringify(plan.request),
        cost_micros: null,
        first_event_ms: null,
        duration_ms: null,
        request_id: plan.requestId,
        created_at: nowSeconds,
        ended_at: null,
      })
      await insertItems(trx, { conversationId, turnId: id, nowSeconds }, plan.input)
    })
  }

  async function assertQuota(tenantId: string): Promise<void> {
    if (settings.maxBytes === 0) return
    const opened = await storage.find()
    if (opened === undefined) return
    const used = await usedBytes.get(tenantId, () => sumTenantBytes(opened.read, tenantId))
    if (used >= settings.maxBytes)
      throw new ServiceError(
        'storage_full',
        `The stored conversations have reached the limit of ${settings.maxBytes} bytes.`,
      )
  }

  async function finish(
    plan: TurnPlan,
    turn: RunningTurn,
    conversationId: string,
    model: RunModel,
  ): Promise<void> {
    const end = await turn.run(model)
    const isStored = await turn.accepted.promise
    // Readers return only after the end is stored, so that a client that continues finds it.
    if (isStored && end.stopped !== 'lost')
      await writer
        .end(turn.id, async (trx) => {
          const place = { id: turn.id, conversation_id: conversationId }
          await storeEnd(trx, place, owner, turn.log.all, end, plan.keepSeconds)
        })
        .catch((error) => log.error({ err: error }, 'could not store the end of a turn'))
    turn.log.end()
    running.delete(turn.id)
  }

  async function storeEnd(
    trx: ConversationDb,
    turn: Pick<TurnRow, 'id' | 'conversation_id'>,
    endedBy: string | undefined,
    entries: readonly LogEntry[],
    end: Pick<TurnEnd, 'failure' | 'stopped'> & Partial<TurnEnd>,
    keepSeconds: number,
  ): Promise<boolean> {
    const nowSeconds = unixSeconds(clock)
    const { items, finish: reason, usage } = renderOutput(turn.id, entries)
    const outcome = outcomeOf(end, reason)
    const promptTokens = usage?.prompt_tokens ?? 0
    const completionTokens = usage?.completion_tokens ?? 0
    const isEnded = await endTurn(trx, turn.id, endedBy, {
      ...outcome,
      last_seq: entries.length - 1,
      provider: end.route?.provider ?? null,
      model: end.route?.model ?? null,
      diagnostics: JSON.stringify(end.route === undefined ? {} : { attempts: end.route.attempts }),
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      first_event_ms: end.firstEventMs === undefined ? null : Math.round(end.firstEventMs),
      duration_ms: end.durationMs === undefined ? null : Math.round(end.durationMs),
      ended_at: nowSeconds,
      // A request whose turn failed before its first event may be sent again with the same key.
      ...(outcome.status === 'failed' && entries.length === 0 && { idempotency_digest: null }),
    })
    if (!isEnded) return false
    // A turn that failed before its first event has produced nothing.
    const produced = entries.length === 0 ? [] : items
    await insertItems(trx, { conversationId: turn.conversation_id, turnId: turn.id, nowSeconds }, produced)
    await releaseConversation(trx, turn, {
      promptTokens,
      completionTokens,
      isFailure: outcome.status === 'failed',
      nowSeconds,
      expiresAt: nowSeconds + keepSeconds,
    })
    return true
  }

  /** Ends the turns whose process has stopped. At the start of a single server, every running turn is one of them. */
  async function sweep(isStart: boolean): Promise<void> {
    try {
      const opened = await storage.find()
      if (opened === undefined || isClosed) return
      const turns = await listAbandonedTurns(opened.read, unixSeconds(clock), isStart ? owner : undefined)
      for (const turn of turns) await endAbandoned(opened.write, turn)
    } catch (error) {
      log.warn({ err: error }, 'could not end the turns of a stopped process')
    }
  }

  async function endAbandoned(db: ConversationDb, turn: TurnRow): Promise<void> {
    const end = { failure: undefined, stopped: 'shutdown' } as const
    await db.transaction().execute(async (trx) => {
      const conversation = await findConversation(trx, turn.tenant, turn.conversation_id)
      const keepSeconds = (conversation?.expires_at ?? 0) - (conversation?.last_at ?? 0)
      const entries = await readEvents(trx, turn.id, 0)
      const last = toEndEntry({ at: unixSeconds(clock), interruption: 'interrupted' })
      const all = [...entries, last]
      if (!(await storeEnd(trx, turn, turn.owner ?? undefined, all, end, Math.max(0, keepSeconds)))) return
      await insertEvents(trx, [{ turnId: turn.id, firstSeq: entries.length, entries: [last] }])
    })
    changes.emit(turn.id)
    bus.publish('turn', turn.id)
  }

  /** Follows a turn on any process from the entry `from` on. @throws ServiceError */
  async function* follow(turn: TurnRow, from: number, signal?: AbortSignal): AsyncGenerator<LogEntry, void, void> {
    const own = running.get(turn.id)
    if (own !== undefined) return yield* own.read(from, signal)
    const { read } = await storage.open()
    let next = from
    for (let current: TurnRow | undefined = turn; ; ) {
      // Read before the events, so that the events of an ended turn are complete.
      const isEnded = current === undefined || current.status !== 'in_progress'
      const changed = waitForChange(turn.id, signal)
      for (const entry of await readEvents(read, turn.id, next)) {
        yield entry
        next += 1
      }
      if (isEnded || signal?.aborted) return changed.cancel()
      await changed.promise
      current = await findTurn(read, turn.tenant, 'id', turn.id)
    }
  }

  function waitForChange(id: string, signal: AbortSignal | undefined) {
    const waiting = new AbortController()
    const signals = signal === undefined ? waiting.signal : AbortSignal.any([waiting.signal, signal])
    const promise = Promise.race([
      once(changes, id, { signal: signals }).catch(() => {}),
      clock.wait(POLL_MS, signals).catch(() => {}),
    ]).then(() => waiting.abort())
    return { promise, cancel: () => waiting.abort() }
  }

  /** Asks the turn's process to stop it. Resolves when the turn has ended, or after a second. */
  async function cancel(turn: TurnRow): Promise<void> {
    const own = running.get(turn.id)
    if (own !== undefined) {
      own.stop('cancelled')
      await own.ended
      return
    }
    const { write } = await storage.open()
    await write
      .updateTable('turns')
      .set({ cancel_requested: 1 })
      .where('id', '=', turn.id)
      .where('status', '=', 'in_progress')
      .execute()
    bus.publish('cancel-turn', turn.id)
  }

  void sweep(deps.isOnlyServer)

  return {
    start,
    follow,
    cancel,
    sweep,
    capabilityOf,
    /** The database, if anything has been stored. */
    find: () => storage.find(),
    open: () => storage.open(),
    async cancelTurnsOf(conversationId: string): Promise<void> {
      const { read } = await storage.open()
      await Promise.all((await listRunningTurns(read, conversationId)).map(cancel))
    },
    async findTurn(tenantId: string, key: TurnKey, value: string): Promise<TurnRow | undefined> {
      const opened = await storage.find()
      return opened && findTurn(opened.read, tenantId, key, value)
    },
    /** The items before a turn's input: of the chain that ends with `previous`, or of a conversation. */
    async readHistory(
      from: { readonly previous: TurnRow } | { readonly conversationId: string },
      limits: HistoryLimits,
    ): Promise<StoredItem[]> {
      const { read } = await storage.open()
      return 'previous' in from
        ? readChain(read, from.previous, limits)
        : readConversation(read, from.conversationId, limits)
    },
    /** The newest turn of a conversation. */
    async findLastTurn(conversationId: string): Promise<TurnRow | undefined> {
      const { read } = await storage.open()
      return findLastTurn(read, conversationId)
    },
    async findItem(tenantId: string, id: string) {
      const opened = await storage.find()
      return opened && findItem(opened.read, tenantId, id)
    },
    async listTurnItems(turnId: string) {
      const { read } = await storage.open()
      return listItemsOfTurns(read, [turnId])
    },
    /** The entries so far, without waiting for more. */
    async readSoFar(turn: TurnRow): Promise<readonly LogEntry[]> {
      const own = running.get(turn.id)
      if (own !== undefined) return own.log.all
      const { read } = await storage.open()
      return readEvents(read, turn.id, 0)
    },
    async deleteTurn(turn: TurnRow): Promise<void> {
      if (turn.status === 'in_progress') await cancel(turn)
      const { write } = await storage.open()
      await write.transaction().execute((trx) => deleteTurn(trx, turn))
    },
    /** @throws ServiceError if the conversation does not exist or belongs to another agent. */
    async assertUsable({ tenantId, agentId, id }: { tenantId: string; agentId: string; id: string }): Promise<void> {
      const opened = await storage.find()
      const conversation = opened && (await findConversation(opened.read, tenantId, id))
      if (conversation === undefined || conversation.visitor_id !== null) throw conversationNotFound(id)
      if (conversation.agent_id !== agentId && conversation.agent_id !== '')
        throw new ServiceError('invalid_value', 'conversation: belongs to another agent', {
          param: 'conversation',
          code: 'agent_mismatch',
        })
    },
    /** Whether the events of a turn can no longer be streamed. */
    isReplayOver: ({ ended_at: endedAt }: TurnRow) =>
      endedAt !== null && endedAt + settings.replaySeconds < unixSeconds(clock),
    /** Whether the idempotency key of a turn may be used again. */
    isKeyOver: ({ created_at: createdAt }: TurnRow) =>
      createdAt + IDEMPOTENCY_SECONDS < unixSeconds(clock),
    async close(): Promise<void> {
      isClosed = true
      clearInterval(sweeping)
      for (const turn of running.values()) turn.stop('shutdown')
      await Promise.all([...running.values()].map(({ ended }) => ended))
      await writer.close()
      await storage.close()
    },
  }
}

/** The database's answer to a turn that found no place in its conversation. */
async function explainUnclaimed(db: ConversationDb, tenantId: string, id: string): Promise<ServiceError> {
  const conversation = await findConversation(db, tenantId, id)
  if (conversation === undefined) return conversationNotFound(id)
  return new ServiceError('conflict', 'Another turn of this conversation is running; try again.', {
    code: 'conversation_locked',
    retryAfterSeconds: 1,
  })
}

function conversationNotFound(id: string): ServiceError {
  return new ServiceError('not_found', `conversation: '${id}' does not exist`, { param: 'conversation' })
}

function full(): ServiceError {
  return new ServiceError(
    'conflict',
    `A conversation may have at most ${MAX_TURNS} turns and ${MAX_ITEMS} items; start a new one.`,
    { code: 'conversation_full' },
  )
}

function assertInputSize(input: readonly NewItem[]): void {
  const bytes = input.reduce((sum, { body }) => sum + Buffer.byteLength(JSON.stringify(body)), 0)
  if (bytes > MAX_INPUT_BYTES)
    throw new ServiceError('too_large', `The input of a stored turn must be at most ${MAX_INPUT_BYTES} bytes.`)
}

function outcomeOf(
  { failure, stopped }: Pick<TurnEnd, 'failure' | 'stopped'>,
  finish: string | undefined,
): { status: TurnStatus; reason: string | null; error_code: string | null } {
  if (stopped === 'cancelled') return { status: 'cancelled', reason: null, error_code: null }
  if (stopped !== undefined) return { status: 'incomplete', reason: 'interrupted', error_code: null }
  if (failure !== undefined) return { status: 'failed', reason: null, error_code: failure.code }
  if (finish === 'length') return { status: 'incomplete', reason: 'max_output_tokens', error_code: null }
  if (finish === 'content_filter') return { status: 'incomplete', reason: 'content_filter', error_code: null }
  return { status: 'completed', reason: null, error_code: null }
}

function titleOf(input: readonly NewItem[]): string | null {
  const first = input.find(({ role }) => role === 'user')
  if (first === undefined) return null
  const { content } = first.body as { content?: unknown }
  const text = Array.isArray(content)
    ? content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join(' ')
    : String(content ?? '')
  return [...text.trim().replace(/\s+/g, ' ')].slice(0, TITLE_LENGTH).join('') || null
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
