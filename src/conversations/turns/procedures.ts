/**
 * Defines the transactions of turns, which run in the write thread (ADR 0054). Their inputs and outputs are
 * plain data.
 */
import type { Insertable } from 'kysely'
import {
  type ConversationDb,
  type ConversationTable,
  insertRow,
  type Procedure,
  type TurnTable,
} from '../../db/open.ts'
import type { CallVisitor } from '../../operations/operation.ts'
import type { EndedStatus } from '../../telemetry/conversation-metrics.ts'
import { insertDeliveries } from '../../webhooks/deliveries.ts'
import type { NewDelivery } from '../../webhooks/events.ts'
import { recordVisitor } from '../feed/rows.ts'
import type { NewData } from '../inline-data/data-rows.ts'
import {
  type EncodedItem,
  insertDataRows,
  insertItemRows,
  insertTurnData,
  updateTitle,
} from '../item-store.ts'
import type { Replacement } from '../replacement/exchanges.ts'
import { markReplaced } from '../replacement/procedures.ts'
import { isErased } from '../retention/erasure.ts'
import {
  type ConversationRow,
  expireIdempotencyKey,
  findConversation,
  insertSegments,
  readSegments,
  renewLeases,
  type TurnRow,
  takeOver,
} from '../store.ts'
import { toEndEntry } from '../turn-output.ts'
import { type StoredEnd, storeEnd } from './end.ts'
import type { LogSegment } from './log.ts'
import { countEntries, decodeSegment, encodeSegment, toRun } from './segments.ts'
import { type Claim, claimAndLock, claimTurn, findMainTurnId, MAX_ITEMS, MAX_TURNS } from './statements.ts'

const file = import.meta.url

export type NewTurnRow = Omit<Insertable<TurnTable>, 'number'>

interface NewTurn {
  readonly expiredKey: { readonly digest: string; readonly createdBefore: number } | undefined
  readonly visitor: CallVisitor | undefined
  /**
   * A new conversation, whose row already counts this turn and, with `locks`, names it as the running turn.
   */
  readonly conversation: Insertable<ConversationTable> | undefined
  /** Webhook events of a new conversation. */
  readonly deliveries: readonly NewDelivery[]
  /** Whether the conversation rejects other turns that need its lock until this turn ends. */
  readonly locks: boolean
  readonly claim: Claim
  readonly tenantId: string
  /** Without `previous_id`, a turn that locks its conversation follows the last turn of the main line. */
  readonly turn: NewTurnRow
  readonly replacement: Replacement | undefined
  readonly items: readonly EncodedItem[]
  readonly data: readonly NewData[]
}

/**
 * Why a conversation rejects a turn: `changed` if its history must be read again, its mode and assignee if
 * the model does not answer.
 */
export type Rejection = 'missing' | 'locked' | 'changed' | 'full' | Pick<ConversationRow, 'mode' | 'assignee'>

/**
 * Stores a turn and its input. If the conversation rejects the turn, stores nothing and returns the reason.
 */
export const storeNewTurn: Procedure<NewTurn, Rejection | undefined> = {
  file,
  name: 'storeNewTurn',
  async run(trx, input) {
    const { expiredKey, visitor, conversation, locks, claim, tenantId, turn, items, data, replacement } =
      input
    if (visitor !== undefined && (await isErased(trx, visitor.id))) return 'missing'
    if (expiredKey !== undefined) await expireIdempotencyKey(trx, expiredKey.digest, expiredKey.createdBefore)
    let numbers: { turns: number; items: number } | undefined = { turns: 1, items: items.length }
    if (conversation !== undefined) await insertRow(trx, 'conversations', conversation)
    else numbers = (await (locks ? claimAndLock : claimTurn)(trx, claim)).rows[0]
    if (numbers === undefined) return explain(trx, tenantId, claim, locks)
    const { conversationId, turnId, nowSeconds } = claim
    if (visitor !== undefined) await recordVisitor(trx, tenantId, visitor, nowSeconds)
    if (replacement !== undefined) await markReplaced(trx, conversationId, replacement, turnId)
    const isOnMainLine = locks && conversation === undefined
    const previousId = turn.previous_id ?? (isOnMainLine ? await findMainTurnId(trx, conversationId) : null)
    await insertRow(trx, 'turns', { ...turn, previous_id: previousId, number: numbers.turns })
    await insertItemRows(trx, { conversationId, turnId, nowSeconds }, items, numbers.items)
    await insertDataRows(trx, { conversationId, turnId }, data)
    if (replacement !== undefined) await updateTitle(trx, conversationId)
    await insertDeliveries(trx, input.deliveries)
    return undefined
  },
}

async function explain(
  trx: ConversationDb,
  tenantId: string,
  { conversationId, revision, items }: Claim,
  locks: boolean,
): Promise<Rejection> {
  const conversation = await findConversation(trx, tenantId, conversationId)
  if (conversation === undefined) return 'missing'
  const { mode, assignee } = conversation
  if (mode !== 'model') return { mode, assignee }
  const isFree = conversation.busy_turn === null
  if (locks && !isFree) return 'locked'
  if (revision !== null && conversation.revision !== revision) return isFree ? 'changed' : 'locked'
  const isFull = conversation.turns >= MAX_TURNS || conversation.items + items > MAX_ITEMS
  // With PostgreSQL, the turn that held the lock may have ended since.
  return isFull ? 'full' : 'locked'
}

interface ChangedTurn {
  readonly turnId: string
  /** The entries that are not yet stored. */
  readonly segments: readonly LogSegment[]
  readonly end: StoredEnd | undefined
}

interface Changes {
  readonly owner: string
  readonly nowSeconds: number
  readonly leaseUntil: number
  readonly turns: readonly ChangedTurn[]
}

/** A turn that still belonged to its process. */
interface OwnTurn {
  readonly id: string
  readonly isCancelRequested: boolean
  /** Undefined for a turn that has not ended. */
  readonly status: EndedStatus | undefined
}

/**
 * Stores new events of turns, and the ends of those that have ended. Returns the turns that still belonged to
 * `owner`.
 */
export const storeTurns: Procedure<Changes, OwnTurn[]> = {
  file,
  name: 'storeTurns',
  async run(trx, { owner, leaseUntil, turns }) {
    const running = turns.filter(({ end }) => end === undefined).map(({ turnId }) => turnId)
    const renewed = running.length === 0 ? [] : await renewLeases(trx, owner, running, leaseUntil)
    const alive: OwnTurn[] = renewed.map(({ id, cancel_requested }) => ({
      id,
      isCancelRequested: cancel_requested === 1,
      status: undefined,
    }))
    for (const { turnId, segments, end } of turns) {
      if (end === undefined) continue
      const firstSeq = segments[0]?.firstSeq
      const earlier = firstSeq === 0 ? [] : await readSegments(trx, turnId, firstSeq)
      const all = [...earlier, ...segments.map(({ body }) => body)]
      const status = await storeEnd(trx, { turnId, owner }, all, end)
      if (status !== undefined) alive.push({ id: turnId, isCancelRequested: false, status })
    }
    const ids = new Set(alive.map(({ id }) => id))
    const stored = turns.filter(({ turnId }) => ids.has(turnId))
    await insertSegments(
      trx,
      stored.flatMap(({ turnId, segments }) => segments.map((segment) => ({ ...segment, turnId }))),
    )
    for (const { turnId, segments } of stored) {
      const data = segments.flatMap((segment) => segment.data)
      if (data.length > 0) await insertTurnData(trx, turnId, data)
    }
    return alive
  },
}

interface Abandoned {
  readonly turn: TurnRow
  readonly owner: string
  readonly nowSeconds: number
}

/**
 * Ends a turn whose process has stopped, using its stored events. Returns false if the process has renewed
 * its lease or another one has ended the turn.
 */
export const endAbandoned: Procedure<Abandoned, boolean> = {
  file,
  name: 'endAbandoned',
  async run(trx, { turn, owner, nowSeconds }) {
    // Locks the turn's row, so that its process cannot store more events after these are read.
    if (!(await takeOver(trx, turn, owner))) return false
    const conversation = await findConversation(trx, turn.tenant, turn.conversation_id)
    const keepSeconds = (conversation?.expires_at ?? 0) - (conversation?.last_at ?? 0)
    const segments = await readSegments(trx, turn.id)
    const last = toRun(toEndEntry({ at: nowSeconds, interruption: 'interrupted' }))
    const body = encodeSegment([last])
    await storeEnd(trx, { turnId: turn.id, owner }, [...segments, body], {
      conversationId: turn.conversation_id,
      failureCode: undefined,
      stopped: 'shutdown',
      keepSeconds: Math.max(0, keepSeconds),
      nowSeconds,
    })
    const firstSeq = segments.reduce((sum, segment) => sum + countEntries(decodeSegment(segment)), 0)
    await insertSegments(trx, [{ turnId: turn.id, firstSeq, count: 1, body }])
    return true
  },
}
