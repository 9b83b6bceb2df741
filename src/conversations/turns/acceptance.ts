/** Stores new turns, and rejects those that a conversation cannot accept. */
import { hash } from 'node:crypto'
import type { Insertable } from 'kysely'
import type { ConversationTable } from '../../db/open.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { CallVisitor } from '../../operations/operation.ts'
import type { Dependencies } from '../dependencies.ts'
import { wrongMode } from '../handover/errors.ts'
import type { ItemData } from '../inline-data/item-data.ts'
import {
  type EncodedItem,
  type EncodedItems,
  type NewItem,
  sizesOf,
  sumBytes,
  titleOf,
} from '../item-store.ts'
import type { Replacement } from '../replacement/exchanges.ts'
import { findTurn, type TurnRow } from '../store.ts'
import { prepareCreated } from '../webhooks/events.ts'
import { type NewTurnRow, type Rejection, storeNewTurn } from './procedures.ts'
import { MAX_ITEMS, MAX_TURNS } from './statements.ts'
import { withoutToolData } from './tool-data.ts'
import { LEASE_SECONDS } from './writer.ts'

const MAX_INPUT_BYTES = 4 * 1024 * 1024
const MAX_ITEM_BYTES = 2 * 1024 * 1024
export const IDEMPOTENCY_SECONDS = 24 * 3600

export interface TurnPlan {
  readonly tenantId: string
  /** Empty for a turn without an agent. */
  readonly agentId: string
  readonly agentVersion: number | undefined
  /** Seconds after the last activity for which the conversation is stored. */
  readonly keepSeconds: number
  /**
   * An existing conversation, which the turn locks. If undefined, the turn uses the conversation of
   * `previous`, or a new one.
   */
  readonly conversationId: string | undefined
  /**
   * The revision of the conversation from which the history and the input were built; undefined if the turn
   * has no stored history.
   */
  readonly revision?: number | undefined
  readonly previous: TurnRow | undefined
  /** The turns that this turn replaces. */
  readonly replacement?: Replacement | undefined
  /** The visitor who started the turn, or on whose behalf a client started it. */
  readonly visitor?: CallVisitor | undefined
  /**
   * Whether the visitor follows the turn in the conversation's feed. Such a turn must be stored, and locks
   * its conversation.
   */
  readonly isFeedTurn?: boolean
  readonly responseId: string | undefined
  readonly idempotency: { readonly digest: string; readonly requestDigest: string } | undefined
  readonly isStream: boolean
  readonly isBackground: boolean
  readonly onDisconnect: 'cancel' | 'continue'
  /** Whether the arguments and results of tools are stored, or only their names. */
  readonly toolData: 'full' | 'names'
  readonly kind: 'model' | 'continuation'
  /** The request without its input. */
  readonly request: object
  readonly input: readonly NewItem[]
  /** Bytes by which the input may exceed the usual limits. */
  readonly extraBytes?: number
  /** The field of the request that contains the input, and the position of the input's first item in it. */
  readonly inputField: { readonly name: 'input' | 'messages'; readonly first: number }
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

type AcceptDeps = Pick<Dependencies, 'storage' | 'nextPosition' | 'webhooks'> & {
  readonly data: ItemData
  /** @throws ServiceError `storage_full` */
  readonly assertQuota: (tenantId: string) => Promise<void>
}

/**
 * Stores a turn and its input, and locks the conversation if the turn needs the lock. @throws ServiceError
 */
export async function acceptTurn(deps: AcceptDeps, plan: TurnPlan, as: AcceptedAs): Promise<void> {
  const input = plan.toolData === 'names' ? plan.input.map(withoutToolData) : plan.input
  await deps.assertQuota(plan.tenantId)
  const encoded = await deps.data.encode(input)
  const rejection = await storeRows(deps, plan, as, encoded).catch(async (error) => {
    // A transaction may be committed even if its answer is lost, for example with the connection.
    if (await hasTurn(deps, plan, as)) return undefined
    await deps.data.discard(encoded.data)
    throw error
  })
  if (rejection === undefined) return
  await deps.data.discard(encoded.data)
  throw toError(rejection, as.conversationId)
}

async function storeRows(
  deps: AcceptDeps,
  plan: TurnPlan,
  as: AcceptedAs,
  { items, data }: EncodedItems,
): Promise<Rejection | undefined> {
  const { id, conversationId, nowSeconds } = as
  const { run } = await deps.storage.open()
  const isNew = plan.conversationId === undefined && plan.previous === undefined
  const { tenantId, agentId, visitor } = plan
  const conversation = isNew ? toConversationRow(deps, plan, as, items) : undefined
  const deliveries =
    conversation === undefined
      ? []
      : await prepareCreated(
          deps.webhooks,
          { tenantId, agentId, conversationId },
          { channel: conversation.channel, visitorId: visitor?.id ?? null, items: plan.input },
        )
  return run(storeNewTurn, {
    expiredKey: plan.idempotency && {
      digest: plan.idempotency.digest,
      createdBefore: nowSeconds - IDEMPOTENCY_SECONDS,
    },
    ...{ visitor, conversation, deliveries },
    locks: isLocking(plan),
    claim: {
      ...{
        conversationId,
        turnId: id,
        agentId,
        title: titleOf(plan.input),
        visitorId: visitor?.id ?? null,
        nowSeconds,
      },
      expiresAt: nowSeconds + plan.keepSeconds,
      items: items.length,
      bytes: sumBytes(items),
      revision: plan.revision ?? null,
    },
    tenantId,
    turn: toTurnRow(plan, as),
    replacement: plan.replacement,
    items,
    data,
  })
}

/** Returns false if the store is unavailable, because then nothing more of the turn can be stored. */
async function hasTurn(
  { storage }: AcceptDeps,
  { tenantId }: TurnPlan,
  { id }: AcceptedAs,
): Promise<boolean> {
  try {
    const { read } = await storage.open()
    return (await findTurn(read, tenantId, 'id', id)) !== undefined
  } catch {
    return false
  }
}

/** Whether a turn must fail if it cannot be stored. */
export function needsStore(plan: TurnPlan): boolean {
  return (
    plan.isBackground ||
    plan.isFeedTurn === true ||
    plan.conversationId !== undefined ||
    plan.previous !== undefined ||
    plan.idempotency !== undefined
  )
}

/** Whether the conversation rejects other turns that need its lock until this turn ends. */
function isLocking({ conversationId, isFeedTurn }: TurnPlan): boolean {
  return conversationId !== undefined || isFeedTurn === true
}

function toError(rejection: Rejection, conversationId: string): ServiceError {
  if (rejection === 'missing') return conversationNotFound(conversationId)
  if (rejection === 'full') return conversationFull()
  if (typeof rejection === 'object') return wrongMode(rejection)
  return rejection === 'changed' ? new ConversationChanged() : conversationLocked()
}

function toConversationRow(
  { nextPosition }: AcceptDeps,
  plan: TurnPlan,
  { id, conversationId, nowSeconds }: AcceptedAs,
  items: readonly EncodedItem[],
): Insertable<ConversationTable> {
  return {
    id: conversationId,
    tenant: plan.tenantId,
    agent_id: plan.agentId,
    visitor_id: plan.visitor?.id ?? null,
    channel: plan.isFeedTurn ? 'widget' : 'api',
    mode_since: nowSeconds,
    assignee: null,
    busy_turn: isLocking(plan) ? id : null,
    title: titleOf(plan.input),
    metadata: JSON.stringify(plan.metadata ?? {}),
    turns: 1,
    items: items.length,
    bytes: sumBytes(items),
    cost: null,
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
    // A response that continues a visitor's response belongs to the same visitor.
    visitor_id: plan.visitor?.id ?? plan.previous?.visitor_id ?? null,
    conversation_id: conversationId,
    previous_id: plan.previous?.id ?? null,
    is_branch: plan.previous === undefined ? 0 : 1,
    replaced: null,
    replaced_by: null,
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
    cost: null,
    read_at: null,
    first_event_ms: null,
    duration_ms: null,
    request_id: plan.requestId,
    created_at: nowSeconds,
    ended_at: null,
  }
}

const LOCKED = 'Another turn of this conversation is running; try again.'
const lockedDetails = { code: 'conversation_locked', retryAfterSeconds: 1 }

/** The conversation has changed since its history was read, so the turn must read it again. */
export class ConversationChanged extends ServiceError {
  constructor() {
    super('conflict', LOCKED, lockedDetails)
  }
}

export function conversationLocked(): ServiceError {
  return new ServiceError('conflict', LOCKED, lockedDetails)
}

export function conversationNotFound(id: string): ServiceError {
  return new ServiceError('not_found', `conversation: '${id}' does not exist`, { param: 'conversation' })
}

export function conversationFull(): ServiceError {
  return new ServiceError(
    'conflict',
    `A conversation may have at most ${MAX_TURNS} turns and ${MAX_ITEMS} items; start a new one.`,
    { code: 'conversation_full' },
  )
}

/**
 * @throws ServiceError `too_large` for an item above 2 MiB, or more than 4 MiB in total, plus `extraBytes`
 */
export function assertInputSize({
  input,
  inputField: { name, first },
  extraBytes = 0,
}: Pick<TurnPlan, 'input' | 'inputField' | 'extraBytes'>): void {
  const sizes = sizesOf(input)
  assertItemSizes(sizes, name, first, extraBytes)
  const sum = sizes.reduce((total, size) => total + size, 0)
  if (sum <= MAX_INPUT_BYTES + extraBytes) return
  const what = name === 'messages' ? 'the messages after the last assistant message' : 'the new items'
  throw new ServiceError(
    'too_large',
    `${name}: ${what} must be at most ${MAX_INPUT_BYTES + extraBytes} bytes in a stored turn (got ${sum})`,
    { param: name },
  )
}

/** `first` is the position of the first item in the field `name`. @throws ServiceError `too_large` */
export function assertItemSizes(sizes: readonly number[], name: string, first = 0, extraBytes = 0): void {
  const maxBytes = MAX_ITEM_BYTES + extraBytes
  const index = sizes.findIndex((size) => size > maxBytes)
  if (index === -1) return
  const param = `${name}[${first + index}]`
  const problem = `must be at most ${maxBytes} bytes to be stored (got ${sizes[index]})`
  throw new ServiceError('too_large', `${param}: ${problem}`, { param })
}

export function digestOf(text: string): string {
  return hash('sha256', text, 'base64url')
}

/** Returns the size in bytes of a turn's input. */
export function inputSizeOf({ input }: Pick<TurnPlan, 'input'>): number {
  return sizesOf(input).reduce((total, size) => total + size, 0)
}

/** Lets concurrent requests with the same idempotency key start only one turn in this process. */
export class KeyedStarts {
  private readonly starting = new Map<string, Promise<unknown>>()

  /**
   * Runs `start`, and returns its result. If a start with this key is already running, waits for it instead
   * and returns undefined; then the caller can find its turn. Rejects like the start that it ran or waited
   * for.
   */
  async run<Started>(key: string, start: () => Promise<Started>): Promise<Started | undefined> {
    const running = this.starting.get(key)
    if (running !== undefined) {
      await running
      return undefined
    }
    const started = start()
    this.starting.set(key, started)
    try {
      return await started
    } finally {
      this.starting.delete(key)
    }
  }
}
