/** Stores the ends of turns. */
import type { ConversationDb } from '../../db/open.ts'
import type { Usage } from '../../providers/chat-api.ts'
import type { EndedStatus } from '../../telemetry/conversation-metrics.ts'
import { insertDeliveries } from '../../webhooks/deliveries.ts'
import type { NewDelivery } from '../../webhooks/events.ts'
import { toResponseUsage } from '../chat-piece.ts'
import { encodeItem, insertItemRows, sumBytes } from '../item-store.ts'
import { indexTurn } from '../search/index-rows.ts'
import { renderOutput } from '../turn-output.ts'
import type { StopReason, TurnRoute } from './running-turn.ts'
import { endTurn, releaseConversation } from './statements.ts'

/** The end of a turn, as plain data. */
export interface StoredEnd {
  readonly conversationId: string
  readonly failureCode: string | undefined
  readonly stopped: StopReason | undefined
  readonly route?: TurnRoute | undefined
  readonly usage?: Usage | undefined
  /** Nano-dollars; undefined if unknown. */
  readonly cost?: number | undefined
  /** Explains how the turn ran; undefined if the turn's process has stopped. */
  readonly diagnostics?: object | undefined
  readonly firstEventMs?: number | undefined
  readonly durationMs?: number
  /** Seconds after which the conversation expires. */
  readonly keepSeconds: number
  readonly nowSeconds: number
  /** Webhook events that are stored if the turn ends with an error code. */
  readonly deliveries?: readonly NewDelivery[]
}

/**
 * Stores the end of a turn and the items from its whole log (`segments`). Returns the turn's status;
 * undefined if it has already ended.
 */
export async function storeEnd(
  trx: ConversationDb,
  { turnId, owner }: { readonly turnId: string; readonly owner: string },
  segments: readonly Uint8Array[],
  end: StoredEnd,
): Promise<EndedStatus | undefined> {
  const { nowSeconds, conversationId } = end
  const { items, count, endedAt, finish, usage: loggedUsage } = renderOutput(turnId, segments)
  const usage = end.usage ?? loggedUsage
  const outcome = outcomeOf(end, { finish, hasOutput: items.length > 0 })
  const details = usage && toResponseUsage(usage)
  const promptTokens = usage?.prompt_tokens ?? 0
  const completionTokens = usage?.completion_tokens ?? 0
  const cost = end.cost ?? null
  const { numAffectedRows } = await endTurn(trx, {
    ...{ id: turnId, owner },
    ...outcome,
    last_seq: count - 1,
    provider: end.route?.provider ?? null,
    model: end.route?.model ?? null,
    diagnostics: renderDiagnostics(end, details),
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    cost,
    first_event_ms: toWhole(end.firstEventMs),
    duration_ms: toWhole(end.durationMs),
    cached_tokens: details?.input_tokens_details.cached_tokens ?? 0,
    reasoning_tokens: details?.output_tokens_details.reasoning_tokens ?? 0,
    ended_at: endedAt ?? nowSeconds,
    // A request whose turn failed before its first event may be sent again with the same key.
    keepsKey: outcome.status === 'failed' && count === 0 ? 0 : 1,
  })
  if (numAffectedRows === 0n) return undefined
  // A turn that failed before its first event has produced nothing.
  const produced = count === 0 ? [] : items.map(encodeItem)
  const { rows } = await releaseConversation(trx, {
    ...{ conversationId, turnId, promptTokens, completionTokens, cost, nowSeconds },
    failures: outcome.error_code === null ? 0 : 1,
    expiresAt: nowSeconds + end.keepSeconds,
    items: produced.length,
    bytes: sumBytes(produced),
  })
  await insertItemRows(trx, { conversationId, turnId, nowSeconds }, produced, rows[0]?.items ?? 0)
  await indexTurn(trx, turnId)
  if (outcome.error_code !== null) {
    const { revision, mode } = rows[0] ?? {}
    await insertDeliveries(trx, end.deliveries ?? [], { status: outcome.status, mode, revision })
  }
  return outcome.status
}

const MAX_DIAGNOSTICS_BYTES = 32 * 1024

/** Adds tokens and times to the diagnostics of a run. If the result exceeds 32 KiB, omits the lists. */
function renderDiagnostics(
  { diagnostics, stopped, firstEventMs, durationMs }: StoredEnd,
  usage: ReturnType<typeof toResponseUsage> | undefined,
): string {
  const rest = {
    stopped: stopped ?? null,
    tokens: usage ?? null,
    timings: { first_event_ms: toWhole(firstEventMs), duration_ms: toWhole(durationMs) },
  }
  const text = JSON.stringify({ ...diagnostics, ...rest })
  if (Buffer.byteLength(text) <= MAX_DIAGNOSTICS_BYTES) return text
  return JSON.stringify({ ...diagnostics, attempts: [], policy: [], tools: [], is_truncated: true, ...rest })
}

function toWhole(milliseconds: number | undefined): number | null {
  return milliseconds === undefined ? null : Math.round(milliseconds)
}

function outcomeOf(
  { failureCode, stopped }: Pick<StoredEnd, 'failureCode' | 'stopped'>,
  { finish, hasOutput }: { readonly finish: string | undefined; readonly hasOutput: boolean },
): { status: EndedStatus; reason: string | null; error_code: string | null } {
  if (stopped === 'taken_over') return { status: 'cancelled', reason: stopped, error_code: null }
  if (stopped === 'cancelled') return { status: 'cancelled', reason: null, error_code: null }
  if (stopped !== undefined) return { status: 'incomplete', reason: 'interrupted', error_code: null }
  if (failureCode !== undefined)
    return hasOutput
      ? { status: 'incomplete', reason: 'interrupted', error_code: failureCode }
      : { status: 'failed', reason: null, error_code: failureCode }
  if (finish === 'length') return { status: 'incomplete', reason: 'max_output_tokens', error_code: null }
  if (finish === 'content_filter') return { status: 'incomplete', reason: finish, error_code: null }
  return { status: 'completed', reason: null, error_code: null }
}
