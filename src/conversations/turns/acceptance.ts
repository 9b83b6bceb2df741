/** Stores new turns, and rejects those for which a conversation has no place. */
import { createHash } from 'node:crypto'
import type { Insertable } from 'kysely'
import type { ConversationDb, ConversationTable, TurnTable } from '../../db/open.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { Dependencies } from '../dependencies.ts'
import { recordVisitor } from '../feed/rows.ts'
import { insertItems, type NewItem } from '../item-store.ts'
import {
  claimNumber,
  expireIdempotencyKey,
  findConversation,
  insertConversation,
  insertTurn,
  type TurnRow,
} from '../store.ts'
import { LEASE_SECONDS } from './writer.ts'

const MAX_TURNS = 1_000
const MAX_ITEMS = 10_000
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
  /** The visitor who started the turn. Such a turn runs only if it is stored, and alone in its conversation. */
  readonly visitorId?: string
  /** The number that the turn must have, because its input was built from the turns before it. */
  readonly number?: number
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
  assertInputSize(plan.input)
  await deps.assertQuota(plan.tenantId)
  const { write } = await deps.storage.open()
  await write.transaction().execute(async (trx) => {
    if (plan.idempotency !== undefined)
      await expireIdempotencyKey(trx, plan.idempotency.digest, nowSeconds - IDEMPOTENCY_SECONDS)
    if (plan.visitorId !== undefined) await recordVisitor(trx, plan, plan.visitorId, nowSeconds)
    if (plan.conversationId === undefined && plan.previous === undefined)
      await insertConversation(trx, toConversationRow(deps, plan, as))
    const lock = plan.conversationId !== undefined || plan.visitorId !== undefined
    const claimed = await claimNumber(trx, {
      id: conversationId,
      turnId: id,
      agentId: plan.agentId,
      title: titleOf(plan.input),
      lock,
      nowSeconds,
      keepSeconds: plan.keepSeconds,
    })
    if (claimed === undefined) throw await explainUnclaimed(trx, plan.tenantId, conversationId)
    if (plan.number !== undefined && claimed.number !== plan.number) throw conversationLocked()
    if (claimed.number > MAX_TURNS || claimed.items + plan.input.length > MAX_ITEMS) throw full()
    await insertTurn(trx, toTurnRow(plan, as, claimed.number))
    await insertItems(trx, { conversationId, turnId: id, nowSeconds }, plan.input)
  })
}

function toConversationRow(
  { nextPosition }: AcceptDeps,
  plan: TurnPlan,
  { conversationId, nowSeconds }: AcceptedAs,
): Insertable<ConversationTable> {
  return {
    id: conversationId,
    tenant: plan.tenantId,
    agent_id: plan.agentId,
    visitor_id: plan.visitorId ?? null,
    channel: plan.visitorId === undefined ? 'api' : 'widget',
    mode_since: nowSeconds,
    assignee: null,
    busy_turn: null,
    title: titleOf(plan.input),
    metadata: JSON.stringify(plan.metadata ?? {}),
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
  number: number,
): Insertable<TurnTable> {
  return {
    id,
    tenant: plan.tenantId,
    agent_id: plan.agentId,
    visitor_id: plan.visitorId ?? null,
    conversation_id: conversationId,
    number: number,
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

/** Explains why a conversation did not admit a turn. */
async function explainUnclaimed(db: ConversationDb, tenantId: string, id: string): Promise<ServiceError> {
  const conversation = await findConversation(db, tenantId, id)
  if (conversation === undefined) return conversationNotFound(id)
  return conversationLocked()
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

function assertInputSize(input: readonly NewItem[]): void {
  const bytes = input.reduce((sum, { body }) => sum + Buffer.byteLength(JSON.stringify(body)), 0)
  if (bytes > MAX_INPUT_BYTES)
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
  return createHash('sha256').update(text).digest('base64url')
}
