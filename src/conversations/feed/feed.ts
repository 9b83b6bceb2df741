/** Follows a conversation: builds its events from the stored items and the logs of its turns (ADR 0057). */
import type { ConversationDb } from '../../db/open.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { Conversations } from '../conversations.ts'
import { findModeEntry } from '../handover/mode-items.ts'
import type { ItemRow } from '../item-store.ts'
import { findReplacement, type ReplacementEntry } from '../replacement/replacement-items.ts'
import type { TurnRow } from '../store.ts'
import {
  isForVisitor,
  type ShownDelta,
  type ShownItem,
  type ShownMode,
  type ShownTurn,
  toShownDelta,
  toShownItem,
  toShownMode,
  toShownTurn,
  toStartedTurn,
  toVisitorItem,
} from './render.ts'
import {
  findClientItemOfTurn,
  findLastPosition,
  findRevision,
  findTurnFrom,
  listItemsBetween,
} from './rows.ts'

/**
 * A position in the feed. The events before it do not change, so a reader can continue without gaps or
 * duplicates.
 */
export interface Cursor {
  /** Position of the last item before the cursor. */
  readonly position: number
  /** Number of the last turn that started before the cursor; 0 without one. */
  readonly turn: number
  /** Number of that turn's next log entry, or `end` if the reader has received the turn's end. */
  readonly next: number | 'end'
}

/** Turns that the visitor replaced, and the turn `by` that replaced them; null if the visitor removed them. */
interface ShownReplacement extends ReplacementEntry {
  readonly by: string | null
}

export type FeedEvent<Type extends ItemRow['type'] = ItemRow['type']> = { readonly id: string } & (
  | { readonly event: 'conversation.item'; readonly data: { readonly item: ShownItem<Type> } }
  | {
      readonly event: 'conversation.turn.started'
      readonly data: { readonly turn: ShownTurn; readonly client_id: string | null }
    }
  | {
      readonly event: 'conversation.turn.delta'
      readonly data: { readonly turn: string } & ShownDelta
    }
  | { readonly event: 'conversation.turn.ended'; readonly data: { readonly turn: ShownTurn } }
  | { readonly event: 'conversation.mode'; readonly data: ShownMode }
  | { readonly event: 'conversation.replaced'; readonly data: ShownReplacement }
)

/** Polling interval of an idle conversation; a poll finds changes whose notification was lost. */
const IDLE_POLL_MS = 10_000
const ITEMS_AT_ONCE = 100
/** The largest value that the PostgreSQL column can store. */
const MAX_POSITION = 2_147_483_647

export function renderCursor({ position, turn, next }: Cursor): string {
  return `${position}.${turn}.${next === 'end' ? 'e' : next}`
}

/** @throws ServiceError */
export function parseCursor(text: string): Cursor {
  const [, position, turn, next] = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9}|e)$/.exec(text) ?? []
  if (next === undefined)
    throw new ServiceError('invalid_value', 'cursor: must be the id of an event of this conversation', {
      param: 'cursor',
    })
  return { position: Number(position), turn: Number(turn), next: next === 'e' ? 'end' : Number(next) }
}

interface Followed {
  readonly conversations: Conversations
  readonly conversationId: string
  readonly from: Cursor
  /**
   * Set if the reader is the conversation's visitor, who receives only some items. `showsNames` shows
   * people's names to the visitor.
   */
  readonly visitor: { readonly showsNames: boolean } | undefined
  readonly signal: AbortSignal
}

/**
 * Yields the events after a cursor until the signal aborts. @throws ServiceError when the conversation is
 * deleted
 */
export async function* followConversation(followed: Followed): AsyncGenerator<FeedEvent, void, void> {
  const { conversations, conversationId, signal } = followed
  const { read } = await conversations.storage.open()
  const reading = new Reading(followed, read)
  let revision: number | undefined
  while (!signal.aborted) {
    // Starts to wait before it reads the rows, so that it misses no change.
    const change = conversations.waitForChange(conversationId, signal, IDLE_POLL_MS)
    try {
      const current = await findRevision(read, conversationId)
      if (current === undefined) throw deleted(conversationId)
      if (current !== revision) yield* reading.advance()
      revision = current
      await change.promise
    } finally {
      change.cancel()
    }
  }
}

function deleted(id: string): ServiceError {
  return new ServiceError('not_found', `Conversation with id '${id}' not found.`, { param: 'conversation' })
}

class Reading {
  private at: Cursor
  private readonly followed: Followed
  private readonly db: ConversationDb

  constructor(followed: Followed, db: ConversationDb) {
    this.followed = followed
    this.db = db
    this.at = followed.from
  }

  /** Yields everything up to now, and waits for the end of running turns. */
  async *advance(): AsyncGenerator<FeedEvent, void, void> {
    const { conversationId, signal } = this.followed
    while (!signal.aborted) {
      if (this.at.next === 'end') {
        const next = await findTurnFrom(this.db, conversationId, this.at.turn + 1)
        if (next === undefined) return yield* this.itemsOutsideTurns()
        yield* this.begin(next)
      }
      yield* this.finish()
    }
  }

  private async *begin(turn: TurnRow): AsyncGenerator<FeedEvent, void, void> {
    yield* this.itemsUpTo(await findLastPosition(this.db, turn.id, 'input'))
    const item = await findClientItemOfTurn(this.db, turn.id)
    this.at = { ...this.at, turn: turn.number, next: 0 }
    const data = { turn: toStartedTurn(turn), client_id: item?.client_id ?? null }
    yield { id: renderCursor(this.at), event: 'conversation.turn.started', data }
  }

  private async *finish(): AsyncGenerator<FeedEvent, void, void> {
    const { conversations, conversationId, signal } = this.followed
    let turn = await findTurnFrom(this.db, conversationId, this.at.turn)
    while (turn?.number === this.at.turn) {
      // Starts to wait before it reads the log, because another process may end the turn in between.
      const change = conversations.waitForChange(turn.id, signal)
      try {
        yield* this.deltas(turn)
        if (signal.aborted) return
        turn = await findTurnFrom(this.db, conversationId, this.at.turn)
        if (turn?.status !== 'in_progress') break
        await change.promise
      } finally {
        change.cancel()
      }
    }
    // A deleted turn has no end event.
    const ended = turn?.number === this.at.turn ? turn : undefined
    if (ended !== undefined) yield* this.itemsUpTo(await findLastPosition(this.db, ended.id, 'turn'))
    this.at = { ...this.at, next: 'end' }
    if (ended !== undefined)
      yield {
        id: renderCursor(this.at),
        event: 'conversation.turn.ended',
        data: { turn: toShownTurn(ended) },
      }
  }

  /**
   * Yields the text and calls in the log. If the log is no longer stored, yields nothing, because the items
   * contain the answer.
   */
  private async *deltas(turn: TurnRow): AsyncGenerator<FeedEvent, void, void> {
    const { conversations, signal } = this.followed
    try {
      for await (const entry of conversations.follow(turn, Number(this.at.next), signal)) {
        this.at = { ...this.at, next: Number(this.at.next) + 1 }
        const delta = toShownDelta(entry)
        if (delta === undefined) continue
        const data = { turn: turn.id, ...delta }
        yield { id: renderCursor(this.at), event: 'conversation.turn.delta', data }
      }
    } catch (error) {
      // The turn failed before its first event; its row contains the reason.
      if (!(error instanceof ServiceError)) throw error
    }
  }

  private async *itemsUpTo(upTo: number): AsyncGenerator<FeedEvent, void, void> {
    while (this.at.position < upTo) {
      const rows = await this.nextItems(upTo)
      for (const row of rows) yield* this.item(row)
      if (rows.length < ITEMS_AT_ONCE) this.at = { ...this.at, position: Math.max(upTo, this.at.position) }
    }
  }

  /**
   * Yields the items after the last turn. Stops at an item of a new turn, which `begin` and `finish` yield.
   */
  private async *itemsOutsideTurns(): AsyncGenerator<FeedEvent, void, void> {
    for (;;) {
      const rows = await this.nextItems(MAX_POSITION)
      for (const row of rows) {
        if (row.turn_id !== null) return
        yield* this.item(row)
      }
      if (rows.length < ITEMS_AT_ONCE) return
    }
  }

  private nextItems(upTo: number): Promise<ItemRow[]> {
    const page = { after: this.at.position, upTo, limit: ITEMS_AT_ONCE }
    return listItemsBetween(this.db, this.followed.conversationId, page)
  }

  private *item(row: ItemRow): Generator<FeedEvent, void, void> {
    this.at = { ...this.at, position: row.position }
    const id = renderCursor(this.at)
    const { visitor } = this.followed
    const entry = findModeEntry(row)
    const replacement = findReplacement(row)
    if (entry !== undefined) yield { id, event: 'conversation.mode', data: toShownMode(entry, visitor) }
    else if (replacement !== undefined)
      yield { id, event: 'conversation.replaced', data: { ...replacement, by: row.turn_id } }
    else if (visitor === undefined) yield { id, event: 'conversation.item', data: { item: toShownItem(row) } }
    else if (isForVisitor(row))
      yield { id, event: 'conversation.item', data: { item: toVisitorItem(row, visitor.showsNames) } }
  }
}
