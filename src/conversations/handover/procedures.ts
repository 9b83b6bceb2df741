/**
 * Defines the transactions that change who answers a conversation, and that store messages without a turn.
 */
import { sql } from 'kysely'
import type { ConversationDb, Procedure } from '../../db/open.ts'
import type { CallVisitor } from '../../operations/operation.ts'
import { insertDeliveries } from '../../webhooks/deliveries.ts'
import type { NewDelivery } from '../../webhooks/events.ts'
import { findClientItem, recordVisitor } from '../feed/rows.ts'
import type { NewData } from '../inline-data/data-rows.ts'
import { type EncodedItem, type ItemRow, insertItems, insertTurnData } from '../item-store.ts'
import { indexItemsFrom } from '../search/index-rows.ts'
import {
  type ConversationRow,
  insertSegments,
  listRunningTurns,
  readSegments,
  type TurnRow,
} from '../store.ts'
import { toEndEntry } from '../turn-output.ts'
import { type StoredEnd, storeEnd } from '../turns/end.ts'
import type { LogSegment } from '../turns/log.ts'
import { countEntries, decodeSegment, encodeSegment, toRun } from '../turns/segments.ts'
import { MAX_ITEMS } from '../turns/statements.ts'
import type { Mode } from './mode-items.ts'
import { renderOutcomes } from './open-calls.ts'

const file = import.meta.url

/** Why nothing was stored; `mode` and `assignee` are the current ones. */
export type Rejected =
  | { readonly status: 'missing' }
  | { readonly status: 'full' }
  | { readonly status: 'wrong_mode'; readonly mode: Mode; readonly assignee: string | null }

/** An earlier request has stored an item with this client id. */
interface Repeated {
  readonly status: 'repeated'
  readonly conversation: ConversationRow
  readonly item: ItemRow
}

interface Done {
  readonly status: 'done'
  readonly conversation: ConversationRow
  /** Ids of the cancelled turns. */
  readonly cancelled: readonly string[]
}

export type Outcome = Done | Repeated | Rejected

/** A stopped turn of this process, with the events that are not yet stored. */
export interface StoppedTurn {
  readonly turnId: string
  readonly segments: readonly LogSegment[]
  readonly end: Omit<StoredEnd, 'conversationId' | 'keepSeconds' | 'nowSeconds'>
}

interface Place {
  readonly tenantId: string
  readonly conversationId: string
  /** Webhook events that are stored with the change. */
  readonly deliveries: readonly NewDelivery[]
}

export interface ModeChange extends Place {
  readonly from: readonly Mode[]
  readonly to: Mode
  readonly assignee: string | null
  readonly answerDue: number | null
  /** The conversation must still have this `answer_due`; undefined to accept any. */
  readonly wasDue?: number | undefined
  readonly nowSeconds: number
  /** Set if the change cancels the running turns. Those of this process must already be stopped. */
  readonly stopped?: readonly StoppedTurn[] | undefined
  /** The item of the change, and the messages after it. */
  readonly items: readonly EncodedItem[]
  readonly clientId?: string | undefined
}

/**
 * With PostgreSQL, a turn started while the transaction waited for the conversation. The transaction must run
 * again.
 */
export class TurnStarted extends Error {}

/**
 * Changes the mode of a conversation, and adds the items of the change. With `stopped`, also cancels the
 * running turns and stores their text in the same transaction.
 */
export const changeMode: Procedure<ModeChange, Outcome> = {
  file,
  name: 'changeMode',
  async run(trx, change) {
    const { tenantId, conversationId, from, stopped, nowSeconds, items, clientId } = change
    // Locks the turns first, like a transaction that ends a turn; another order could cause a deadlock in
    // PostgreSQL.
    const turns = stopped === undefined ? [] : await lockRunningTurns(trx, conversationId)
    const row = await lockConversation(trx, { tenantId, conversationId })
    if (row === undefined) return { status: 'missing' }
    const repeated = clientId && (await findClientItem(trx, conversationId, clientId))
    if (repeated) return { status: 'repeated', conversation: row, item: repeated }
    const isDue = change.wasDue === undefined || change.wasDue === row.answer_due
    if (!from.includes(row.mode) || !isDue) return toWrongMode(row)
    const { length: outcomes } = await renderOutcomes(trx, row)
    if (row.items + items.length + outcomes > MAX_ITEMS) return { status: 'full' }
    if (stopped !== undefined) await cancelTurns(trx, row, turns, stopped, nowSeconds)
    await trx
      .updateTable('conversations')
      .set((eb) => ({
        mode: change.to,
        mode_since: nowSeconds,
        assignee: change.assignee,
        answer_due: change.answerDue,
        last_at: nowSeconds,
        expires_at: nowSeconds + keepSecondsOf(row),
        revision: eb('revision', '+', 1),
      }))
      .where('id', '=', conversationId)
      .execute()
    const added = withOutcomes(items, await renderOutcomes(trx, row))
    const place = { conversationId, turnId: null, nowSeconds }
    const count = await insertItems(trx, place, { items: added, data: [] })
    await indexItemsFrom(trx, conversationId, count - added.length + 1)
    const conversation = (await lockConversation(trx, change)) as ConversationRow
    const { mode, revision } = conversation
    await insertDeliveries(trx, change.deliveries, { mode, revision })
    return { status: 'done', conversation, cancelled: turns.map(({ id }) => id) }
  },
}

export interface MessageChange extends Place {
  readonly modes: readonly Mode[]
  /** The person who must be the assignee; undefined for a visitor's message. */
  readonly assignee?: string | undefined
  /** Set for a visitor, whose last activity is updated. */
  readonly visitor?: CallVisitor | undefined
  /**
   * Unix seconds at which an answer is due, unless an earlier time is stored; null if the message is an
   * answer.
   */
  readonly answerDue: number | null
  readonly title: string | null
  readonly nowSeconds: number
  readonly item: EncodedItem & { readonly clientId: string }
  readonly data: readonly NewData[]
}

/** Stores a message of a person or a visitor in a conversation that the model does not answer. */
export const storeMessage: Procedure<MessageChange, Outcome> = {
  file,
  name: 'storeMessage',
  async run(trx, change) {
    const { tenantId, conversationId, modes, assignee, visitor, answerDue, item, data, nowSeconds } = change
    const row = await lockConversation(trx, { tenantId, conversationId })
    if (row === undefined) return { status: 'missing' }
    const repeated = await findClientItem(trx, conversationId, item.clientId)
    if (repeated !== undefined) return { status: 'repeated', conversation: row, item: repeated }
    const isAssignees = assignee === undefined || assignee === row.assignee
    if (!modes.includes(row.mode) || !isAssignees) return toWrongMode(row)
    // A turn that was running when the conversation was handed over may have called tools of the page since.
    const outcomes = await renderOutcomes(trx, row)
    if (row.items + outcomes.length >= MAX_ITEMS) return { status: 'full' }
    await trx
      .updateTable('conversations')
      .set({
        answer_due: answerDue === null ? null : sql<number>`coalesce(answer_due, ${answerDue})`,
        title: sql<string | null>`coalesce(title, ${change.title})`,
        last_at: nowSeconds,
        expires_at: nowSeconds + keepSecondsOf(row),
      })
      .where('id', '=', conversationId)
      .execute()
    if (visitor !== undefined) await recordVisitor(trx, tenantId, visitor, nowSeconds)
    const place = { conversationId, turnId: null, nowSeconds }
    const count = await insertItems(trx, place, { items: [...outcomes, item], data })
    await indexItemsFrom(trx, conversationId, count)
    const conversation = (await lockConversation(trx, change)) as ConversationRow
    const { mode, revision } = conversation
    await insertDeliveries(trx, change.deliveries, { mode, revision })
    return { status: 'done', conversation, cancelled: [] }
  },
}

/**
 * Adds the outputs of open calls directly after the item of the change, so that pages end their tools first;
 * before it if the model reads the item.
 */
function withOutcomes(items: readonly EncodedItem[], outcomes: readonly EncodedItem[]): EncodedItem[] {
  return items.toSpliced(items[0]?.isForModel === false ? 1 : 0, 0, ...outcomes)
}

/** Returns the conversation, which no other transaction changes until this one ends. */
function lockConversation(
  trx: ConversationDb,
  { tenantId, conversationId }: Omit<Place, 'deliveries'>,
): Promise<ConversationRow | undefined> {
  return trx
    .updateTable('conversations')
    .set((eb) => ({ revision: eb.ref('revision') }))
    .where('tenant', '=', tenantId)
    .where('id', '=', conversationId)
    .returningAll()
    .executeTakeFirst()
}

function lockRunningTurns(trx: ConversationDb, conversationId: string): Promise<TurnRow[]> {
  return trx
    .updateTable('turns')
    .set((eb) => ({ owner: eb.ref('owner') }))
    .where('conversation_id', '=', conversationId)
    .where('status', '=', 'in_progress')
    .returningAll()
    .execute()
}

function toWrongMode({ mode, assignee }: ConversationRow): Rejected {
  return { status: 'wrong_mode', mode, assignee }
}

function keepSecondsOf({ expires_at: expiresAt, last_at: lastAt }: ConversationRow): number {
  return Math.max(0, expiresAt - lastAt)
}

async function cancelTurns(
  trx: ConversationDb,
  row: ConversationRow,
  turns: readonly TurnRow[],
  stopped: readonly StoppedTurn[],
  nowSeconds: number,
): Promise<void> {
  const known = new Set(turns.map(({ id }) => id))
  const running = await listRunningTurns(trx, row.id)
  if (running.some(({ id }) => !known.has(id))) throw new TurnStarted()
  const place = { conversationId: row.id, keepSeconds: keepSecondsOf(row), nowSeconds }
  for (const turn of turns) {
    const own = stopped.find(({ turnId }) => turnId === turn.id)
    await (own === undefined ? cancelStored(trx, turn, place) : cancelStopped(trx, turn, own, place))
  }
}

type EndPlace = Pick<StoredEnd, 'conversationId' | 'keepSeconds' | 'nowSeconds'>

/** Ends a stopped turn of this process with its whole text. */
async function cancelStopped(
  trx: ConversationDb,
  { id: turnId, owner }: TurnRow,
  { segments, end }: StoppedTurn,
  place: EndPlace,
): Promise<void> {
  const firstSeq = segments[0]?.firstSeq
  const earlier = firstSeq === 0 ? [] : await readSegments(trx, turnId, firstSeq)
  const all = [...earlier, ...segments.map(({ body }) => body)]
  await storeEnd(trx, { turnId, owner: owner ?? '' }, all, { ...end, ...place })
  await insertSegments(
    trx,
    segments.map((segment) => ({ ...segment, turnId })),
  )
  const data = segments.flatMap((segment) => segment.data)
  if (data.length > 0) await insertTurnData(trx, turnId, data)
}

/** Ends a turn of another process with what it has stored; that process stores nothing for it afterwards. */
async function cancelStored(
  trx: ConversationDb,
  { id: turnId, owner }: TurnRow,
  place: EndPlace,
): Promise<void> {
  const segments = await readSegments(trx, turnId)
  const last = toRun(toEndEntry({ at: place.nowSeconds, interruption: 'cancelled' }))
  const body = encodeSegment([last])
  const end = { failureCode: undefined, stopped: 'taken_over' as const }
  await storeEnd(trx, { turnId, owner: owner ?? '' }, [...segments, body], { ...end, ...place })
  const firstSeq = segments.reduce((sum, segment) => sum + countEntries(decodeSegment(segment)), 0)
  await insertSegments(trx, [{ turnId, firstSeq, count: 1, body }])
}
