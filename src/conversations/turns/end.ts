/** Stores the ends of turns. */
import type { ConversationDb } from '../../db/open.ts'
import type { EndedStatus } from '../../telemetry/conversation-metrics.ts'
import { toResponseUsage } from '../chat-piece.ts'
import { insertItems } from '../item-store.ts'
import {
  endTurn,
  findConversation,
  insertEvents,
  readEvents,
  releaseConversation,
  type TurnRow,
  takeOver,
} from '../store.ts'
import { endOf, renderOutput, toEndEntry } from '../turn-output.ts'
import type { TurnEnd } from './running-turn.ts'
import type { LogEntry } from './segments.ts'

/** Stores the end of a turn and what it produced. Returns its status; undefined if the turn has ended already. */
export async function storeEnd(
  trx: ConversationDb,
  turn: Pick<TurnRow, 'id' | 'conversation_id'>,
  endedBy: string | undefined,
  entries: readonly LogEntry[],
  end: Pick<TurnEnd, 'failure' | 'stopped'> & Partial<TurnEnd>,
  { keepSeconds, nowSeconds }: { readonly keepSeconds: number; readonly nowSeconds: number },
): Promise<EndedStatus | undefined> {
  const { items, finish, usage: loggedUsage } = renderOutput(turn.id, entries)
  const usage = end.usage ?? loggedUsage
  const outcome = outcomeOf(end, { finish, hasOutput: items.length > 0 })
  const details = usage && toResponseUsage(usage)
  const last = entries.at(-1)
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
    cached_tokens: details?.input_tokens_details.cached_tokens ?? 0,
    reasoning_tokens: details?.output_tokens_details.reasoning_tokens ?? 0,
    ended_at: (last && endOf(last)?.at) ?? nowSeconds,
    // A request whose turn failed before its first event may be sent again with the same key.
    ...(outcome.status === 'failed' && entries.length === 0 && { idempotency_digest: null }),
  })
  if (!isEnded) return undefined
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
  return outcome.status
}

/**
 * Ends a turn whose process has stopped, and keeps the entries that were stored. Returns false if the process
 * has renewed its lease or another one has ended the turn.
 */
export async function endAbandoned(
  db: ConversationDb,
  turn: TurnRow,
  owner: string,
  nowSeconds: number,
): Promise<boolean> {
  const end = { failure: undefined, stopped: 'shutdown' } as const
  return db.transaction().execute(async (trx) => {
    // Locks the row, so that the turn's process cannot store more events after these are read.
    if (!(await takeOver(trx, turn, owner))) return false
    const conversation = await findConversation(trx, turn.tenant, turn.conversation_id)
    const keepSeconds = (conversation?.expires_at ?? 0) - (conversation?.last_at ?? 0)
    const entries = await readEvents(trx, turn.id, 0)
    const last = toEndEntry({ at: nowSeconds, interruption: 'interrupted' })
    const all = [...entries, last]
    await storeEnd(trx, turn, owner, all, end, { keepSeconds: Math.max(0, keepSeconds), nowSeconds })
    await insertEvents(trx, [{ turnId: turn.id, firstSeq: entries.length, entries: [last] }])
    return true
  })
}

function outcomeOf(
  { failure, stopped }: Pick<TurnEnd, 'failure' | 'stopped'>,
  { finish, hasOutput }: { readonly finish: string | undefined; readonly hasOutput: boolean },
): { status: EndedStatus; reason: string | null; error_code: string | null } {
  if (stopped === 'cancelled') return { status: 'cancelled', reason: null, error_code: null }
  if (stopped !== undefined) return { status: 'incomplete', reason: 'interrupted', error_code: null }
  if (failure !== undefined)
    return hasOutput
      ? { status: 'incomplete', reason: 'interrupted', error_code: failure.code }
      : { status: 'failed', reason: null, error_code: failure.code }
  if (finish === 'length') return { status: 'incomplete', reason: 'max_output_tokens', error_code: null }
  if (finish === 'content_filter') return { status: 'incomplete', reason: finish, error_code: null }
  return { status: 'completed', reason: null, error_code: null }
}
