/** Prepares webhook events for changes to conversations. */
import type { Logger } from 'pino'
import type { ConversationDb } from '../../db/open.ts'
import type { Clock } from '../../lib/clock.ts'
import { deleteTextsOf, insertDeliveries } from '../../webhooks/deliveries.ts'
import type { EventPublisher } from '../../webhooks/dependencies.ts'
import type { NewDelivery, Subscribers } from '../../webhooks/events.ts'
import { type NewItem, textOf } from '../item-store.ts'

const RETRY_AFTER_MS = 500

interface About {
  readonly tenantId: string
  /** Empty without an agent. */
  readonly agentId: string
  readonly conversationId: string
}

/** Without a publisher, as in tests of one module, changes are not reported. */
type Publisher = Pick<EventPublisher, 'find'> | undefined

/** Prepares the event of a new conversation with its first items. */
export async function prepareCreated(
  publisher: Publisher,
  about: About,
  { channel, visitorId, items }: { channel: string; visitorId: string | null; items: readonly NewItem[] },
): Promise<readonly NewDelivery[]> {
  const subscribers = await publisher?.find()
  const data = { mode: 'model', revision: 0, channel, visitor_id: visitorId }
  return (
    subscribers?.prepare({ type: 'conversation.created', ...about, data, text: { text: textOf(items) } }) ??
    []
  )
}

interface RetryDeps {
  readonly webhooks?: Publisher
  readonly clock: Pick<Clock, 'wait'>
  readonly log: Pick<Logger, 'warn'>
}

/**
 * Prepares the event of a turn that ends with an error; its transaction adds the status, the mode and the
 * revision. Repeats this until the webhooks can be read, because a turn must end even if the database is
 * busy. After `closing` aborts, the turn ends without the event.
 */
export async function prepareFailed(
  deps: RetryDeps,
  { tenantId, agentId, conversationId, turnId }: About & { readonly turnId: string },
  failure: { readonly code: string } | undefined,
  closing: AbortSignal,
): Promise<readonly NewDelivery[]> {
  if (failure === undefined) return []
  const data = { turn_id: turnId, error_code: failure.code }
  for (;;) {
    try {
      const subscribers = await deps.webhooks?.find()
      return subscribers?.prepare({ type: 'turn.failed', tenantId, agentId, conversationId, data }) ?? []
    } catch (error) {
      if (closing.aborted) {
        deps.log.warn({ err: error, turnId }, 'could not report a failed turn to webhooks')
        return []
      }
      deps.log.warn({ err: error, turnId }, 'could not read webhooks for a failed turn; will retry')
      await deps.clock.wait(RETRY_AFTER_MS, closing).catch(() => {})
    }
  }
}

const modeEvents = {
  waiting: 'conversation.waiting',
  person: 'conversation.taken_over',
  model: 'conversation.handed_back',
} as const

interface HandoverEvents extends About {
  /** The new mode; undefined if only messages are added. */
  readonly to?: keyof typeof modeEvents
  readonly messages: readonly Pick<NewItem, 'id' | 'author' | 'body'>[]
}

/**
 * Prepares the events of a mode change and of its messages. The transaction that stores them adds the mode
 * and the revision.
 */
export async function prepareHandover(
  publisher: Publisher,
  { to, messages, ...about }: HandoverEvents,
): Promise<readonly NewDelivery[]> {
  const subscribers = await publisher?.find()
  if (subscribers === undefined || subscribers.isEmpty) return []
  const changes = to === undefined ? [] : subscribers.prepare({ type: modeEvents[to], ...about })
  const added = messages.flatMap((item) => {
    const data = { item_id: item.id, author: item.author }
    return subscribers.prepare({
      ...{ type: 'conversation.message' as const, ...about, data },
      text: { text: textOf([{ ...item, role: 'user', author: 'visitor' }]) },
    })
  })
  return [...changes, ...added]
}

/** Reports a rating in the transaction that stores it, after the conversation's revision has changed. */
export async function recordRated(
  trx: ConversationDb,
  subscribers: Subscribers | undefined,
  conversationId: string,
  rating: Readonly<Record<'turn_id' | 'source' | 'value', string>> & { readonly reason: string | null },
): Promise<void> {
  if (subscribers === undefined || subscribers.isEmpty) return
  const { tenant, agent_id, mode, revision } = await trx
    .selectFrom('conversations')
    .select(['tenant', 'agent_id', 'mode', 'revision'])
    .where('id', '=', conversationId)
    .executeTakeFirstOrThrow()
  const about = { tenantId: tenant, agentId: agent_id, conversationId }
  const data = { mode, revision, ...rating }
  await insertDeliveries(trx, subscribers.prepare({ type: 'conversation.rated', ...about, data }))
}

export type DeletionReason = 'deleted' | 'expired' | 'agent_deleted' | 'visitor_erased'

/** The webhooks that receive the event of a deletion, and the reason for the deletion. */
export interface Deletion {
  readonly subscribers: Subscribers | undefined
  readonly reason: DeletionReason
}

export async function prepareDeletion(publisher: Publisher, reason: DeletionReason): Promise<Deletion> {
  return { subscribers: await publisher?.find(), reason }
}

/**
 * Stores the events of conversations that the transaction deletes next, and deletes other deliveries that
 * contain their text.
 */
export async function recordDeletion(
  trx: ConversationDb,
  ids: readonly string[],
  { subscribers, reason }: Deletion,
): Promise<void> {
  await deleteTextsOf(trx, ids)
  if (subscribers === undefined || subscribers.isEmpty) return
  const rows = await trx
    .selectFrom('conversations')
    .select(['id', 'tenant', 'agent_id', 'mode', 'revision'])
    .where('id', 'in', ids)
    .execute()
  const deliveries = rows.flatMap(({ id, tenant, agent_id, mode, revision }) => {
    const data = { mode, revision: revision + 1, reason }
    const about = { tenantId: tenant, agentId: agent_id, conversationId: id }
    return subscribers.prepare({ type: 'conversation.deleted', ...about, data })
  })
  await insertDeliveries(trx, deliveries)
}
