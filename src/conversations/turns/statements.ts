/** Defines the statements that start and end turns; each is compiled once. */
import { type Selectable, sql } from 'kysely'
import { type ConversationDb, type ConversationTable, prepare, type TurnTable } from '../../db/open.ts'

export const MAX_TURNS = 1_000
export const MAX_ITEMS = 10_000

export interface Claim {
  readonly conversationId: string
  readonly turnId: string
  readonly agentId: string
  readonly title: string | null
  /** Becomes the visitor of a conversation that has none. */
  readonly visitorId: string | null
  readonly nowSeconds: number
  readonly expiresAt: number
  /** The number of items in the turn's input, and their size in bytes. */
  readonly items: number
  readonly bytes: number
  /** The revision of the conversation from which the turn's history was read; null to accept any revision. */
  readonly revision: number | null
}

function prepareClaim(locks: boolean) {
  return prepare<Claim, { turns: number; items: number }>((db, param) =>
    db
      .updateTable('conversations')
      .set((eb) => ({
        turns: eb('turns', '+', 1),
        items: eb('items', '+', param('items')),
        bytes: eb('bytes', '+', param('bytes')),
        revision: eb('revision', '+', 1),
        last_at: param('nowSeconds'),
        expires_at: param('expiresAt'),
        // A conversation belongs to the agent of its first turn.
        agent_id: sql<string>`case when agent_id = '' then ${param('agentId')} else agent_id end`,
        title: sql<string | null>`coalesce(title, ${param('title')})`,
        visitor_id: sql<string | null>`coalesce(visitor_id, ${param('visitorId')})`,
        ...(locks && { busy_turn: param('turnId') }),
      }))
      .where('id', '=', param('conversationId'))
      .where('turns', '<', MAX_TURNS)
      .where('revision', '=', sql<number>`coalesce(${param('revision')}, revision)`)
      .where((eb) => eb(eb('items', '+', param('items')), '<=', MAX_ITEMS))
      .where('mode', '=', 'model')
      .$if(locks, (query) => query.where('busy_turn', 'is', null))
      .returning(['turns', 'items']),
  )
}

/**
 * Counts a turn and its input in a conversation, and returns its new numbers of turns and items. Updates
 * nothing if the conversation is full or deleted, the model does not answer it, or its revision differs.
 */
export const claimTurn = prepareClaim(false)

/**
 * Like `claimTurn`, but also locks the conversation until the turn ends. Updates nothing if another turn
 * holds the lock.
 */
export const claimAndLock = prepareClaim(true)

const selectMainTurn = prepare<{ readonly conversationId: string }, { id: string }>((db, param) =>
  db
    .selectFrom('turns')
    .select('id')
    .where('conversation_id', '=', param('conversationId'))
    .where('is_branch', '=', 0)
    .orderBy('number', 'desc')
    .limit(1),
)

/** Returns the last turn of a conversation's main line; null if it has none. */
export async function findMainTurnId(db: ConversationDb, conversationId: string): Promise<string | null> {
  const { rows } = await selectMainTurn(db, { conversationId })
  return rows[0]?.id ?? null
}

type EndedRow = Pick<
  Selectable<TurnTable>,
  | 'id'
  | 'owner'
  | 'status'
  | 'reason'
  | 'error_code'
  | 'last_seq'
  | 'provider'
  | 'model'
  | 'diagnostics'
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'cost'
  | 'first_event_ms'
  | 'duration_ms'
  | 'cached_tokens'
  | 'reasoning_tokens'
  | 'ended_at'
>

/**
 * Ends a running turn of an owner. Updates nothing if the turn has already ended; the caller must then store
 * nothing else for it.
 */
export const endTurn = prepare<EndedRow & { readonly keepsKey: 0 | 1 }>((db, param) =>
  db
    .updateTable('turns')
    .set({
      status: param('status'),
      reason: param('reason'),
      error_code: param('error_code'),
      last_seq: param('last_seq'),
      provider: param('provider'),
      model: param('model'),
      diagnostics: param('diagnostics'),
      prompt_tokens: param('prompt_tokens'),
      completion_tokens: param('completion_tokens'),
      cost: param('cost'),
      first_event_ms: param('first_event_ms'),
      duration_ms: param('duration_ms'),
      cached_tokens: param('cached_tokens'),
      reasoning_tokens: param('reasoning_tokens'),
      ended_at: param('ended_at'),
      idempotency_digest: sql<string | null>`case when ${param('keepsKey')} = 1 then idempotency_digest end`,
      lease_until: null,
    })
    .where('id', '=', param('id'))
    .where('status', '=', 'in_progress')
    .where('owner', '=', param('owner')),
)

export interface Released {
  readonly conversationId: string
  readonly turnId: string
  readonly promptTokens: number
  readonly completionTokens: number
  /** Nano-dollars; null if unknown. */
  readonly cost: number | null
  readonly failures: number
  readonly nowSeconds: number
  readonly expiresAt: number
  /** The number of items in the turn's output, and their size in bytes. */
  readonly items: number
  readonly bytes: number
}

/** Releases a conversation's lock, and adds the usage and output of its turn. */
export const releaseConversation = prepare<
  Released,
  Pick<Selectable<ConversationTable>, 'items' | 'revision' | 'mode'>
>((db, param) =>
  db
    .updateTable('conversations')
    .set((eb) => ({
      busy_turn: sql<string | null>`case when busy_turn = ${param('turnId')} then null else busy_turn end`,
      prompt_tokens: eb('prompt_tokens', '+', param('promptTokens')),
      completion_tokens: eb('completion_tokens', '+', param('completionTokens')),
      cost: sql<number | null>`coalesce(cost + ${param('cost')}, cost, ${param('cost')})`,
      failures: eb('failures', '+', param('failures')),
      items: eb('items', '+', param('items')),
      bytes: eb('bytes', '+', param('bytes')),
      revision: eb('revision', '+', 1),
      last_at: param('nowSeconds'),
      expires_at: param('expiresAt'),
    }))
    .where('id', '=', param('conversationId'))
    .returning(['items', 'revision', 'mode']),
)
