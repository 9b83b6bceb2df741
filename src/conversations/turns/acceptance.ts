/** Stores new turns, and rejects those for which a conversation has no place. */
import { hash } from 'node:crypto'
import type { Insertable } from 'kysely'
import type { ConversationTable } from '../../db/open.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { Dependencies } from '../dependencies.ts'
import { type EncodedItem, encodeItem, type NewItem, sumBytes } from '../item-store.ts'
import type { TurnRow } from '../store.ts'
import { type NewTurnRow, storeNewTurn } from './procedures.ts'
import { MAX_ITEMS, MAX_TURNS } from './statements.ts'
import { LEASE_SECONDS } from './writer.ts'

const MAX_INPUT_BYTES = 4 * 1024 * 1024
export const IDEMPOTENCY_SECONDS = 24 * 3600
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

interface AcceptedAs {
  readonly id: string
  readonly conversationId: string
  readonly capability: string
  readonly nowSeconds: number
  readonly owner: string
}

type AcceptDeps = Pick<Dependencies, 'storage' | 'nextPosition'> & {
  /** @throws ServiceError `storage_full` */
  readonly assertQuota: (tenantId: string) => Promise<void>
}

/** Stores a turn and its input, and takes the lock of its conversation. @throws ServiceError */
export async function acceptTurn(deps: AcceptDeps, plan: TurnPlan, as: AcceptedAs): Promise<void> {
  const { id, conversationId, nowSeconds } = as
  const items = plan.input.map(encodeItem)
  assertInputSize(items)
  await deps.assertQuota(plan.tenantId)
  const { run } = await deps.storage.open()
  const isNew = plan.conversationId === undefined && plan.previous === undefined
  const rejection = await run(storeNewTurn, {
    expiredKey: plan.idempotency && {
      digest: plan.idempotency.digest,
      createdBefore: nowSeconds - IDEMPOTENCY_SECONDS,
    },
    conversation: isNew ? toConversationRow(deps, plan, as, items) : undefined,
    locks: plan.conversationId !== undefined,
    claim: {
      ...{ conversationId, turnId: id, agentId: plan.agentId, title: titleOf(plan.input), nowSeconds },
      expiresAt: nowSeconds + plan.keepSeconds,
      items: items.length,
      bytes: sumBytes(items),
    },
    tenantId: plan.tenantId,
    turn: toTurnRow(plan, as),
    items,
  })
  if (rejection === 'missing') throw conversationNotFound(conversationId)
  if (rejection === 'locked') throw conversationLocked()
  if (rejection === 'full') throw full()
}

function toConversationRow(
  { nextPosition }: AcceptDeps,
  plan: TurnPlan,
  { conversationId, nowSeconds }: AcceptedAs,
  items: readonly EncodedItem[],
): Insertable<ConversationTable> {
  return {
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
    turns: 1,
    items: items.length,
    bytes: sumBytes(items),
    cost_micros: null,
    created_at: nowSeconds,
    last_at: nowSeconds,
    position: nextPosition(),
    expires_at: nowSeconds + plan.keepSeconds,
  }
}

function toTurnRow(
  plan: TurnPlan,
  { id, conversationId, capability, nowSeconds, owner }: AcceptedAs,
): NewTurnRow {
  return {
    id,
    tenant: plan.tenantId,
    agent_id: plan.agentId,
    visitor_id: null,
    conversation_id: conversationId,
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
  }
}

export function conversationLocked(): ServiceError {
  return new ServiceError('conflict', 'Another turn of this conversation is running; try again.', {
    code: 'conversation_locked',
    retryAfterSeconds: 1,
  })
}

export function conversationNotFound(id: string): ServiceError {
  return new ServiceError('not_found', `conversation: '${id}' does not exist`, { param: 'conversation' })
}

function full(): ServiceError {
  return new ServiceError(
    'conflict',
    `A conversation may have at most ${MAX_TURNS} turns and ${MAX_ITEMS} items; start a new one.`,
    { code: 'conversation_full' },
  )
}

function assertInputSize(items: readonly EncodedItem[]): void {
  if (sumBytes(items) > MAX_INPUT_BYTES)
    throw new ServiceError(
      'too_large',
      `The input of a stored turn must be at most ${MAX_INPUT_BYTES} bytes.`,
    )
}

export function titleOf(input: readonly NewItem[]): string | null {
  const first = input.find(({ role }) => role === 'user')
  if (first === undefined) return null
  const { content } = first.body as { content?: unknown }
  const text = Array.isArray(content)
    ? content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join(' ')
    : String(content ?? '')
  return [...text.trim().replace(/\s+/g, ' ')].slice(0, TITLE_LENGTH).join('') || null
}

export function digestOf(text: string): string {
  return hash('sha256', text, 'base64url')
}
