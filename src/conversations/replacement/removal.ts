/** Removes messages from the history of visitors' conversations (ADR 0076). */
import { type Clock, unixSeconds } from '../../lib/clock.ts'
import type { ServiceError } from '../../lib/errors.ts'
import type { Random } from '../../lib/ids.ts'
import type { Conversations } from '../conversations.ts'
import { wrongMode } from '../handover/errors.ts'
import { encodeItem } from '../item-store.ts'
import { findConversation, type TurnRow } from '../store.ts'
import { conversationFull, conversationLocked, conversationNotFound } from '../turns/acceptance.ts'
import { findReplacedTurns } from './exchanges.ts'
import { type RemovalRejection, removeTurns } from './procedures.ts'
import { toReplacementItem } from './replacement-items.ts'

/** Maximum number of attempts while other changes of the conversation are stored at the same time. */
const MAX_TRIES = 5

interface RemovalDependencies {
  readonly conversations: Conversations
  readonly clock: Clock
  readonly random: Random
}

/**
 * Removes the visitor's message that `turn` answers, and its answer, from the history. Does nothing if they
 * were already removed.
 * @throws ServiceError `not_replaceable`, `conversation_locked`, `wrong_mode`
 */
export async function removeExchange(
  { conversations, clock, random }: RemovalDependencies,
  turn: TurnRow,
): Promise<void> {
  const { tenant: tenantId, conversation_id: conversationId } = turn
  const { read, run } = await conversations.storage.open()
  let rejection: RemovalRejection | undefined = 'changed'
  for (let tries = 0; tries < MAX_TRIES && rejection === 'changed'; tries++) {
    // Reads the revision before the turns, so that the transaction detects changes in between.
    const conversation = await findConversation(read, tenantId, conversationId)
    const current = await conversations.reader.findTurn(tenantId, 'id', turn.id)
    if (conversation === undefined || current === undefined) throw conversationNotFound(conversationId)
    if (current.replaced === 'removed') return
    if (conversation.mode !== 'model') throw wrongMode(conversation)
    const { replacement, turns } = await findReplacedTurns(read, current, 'removed')
    rejection = await run(removeTurns, {
      ...{ tenantId, conversationId, replacement },
      revision: Number(conversation.revision),
      item: encodeItem(toReplacementItem({ how: 'removed', turns }, random)),
      nowSeconds: unixSeconds(clock),
    })
  }
  conversations.notify(conversationId, tenantId)
  if (rejection !== undefined) throw toError(rejection, conversationId)
}

function toError(rejection: RemovalRejection, conversationId: string): ServiceError {
  if (rejection === 'missing') return conversationNotFound(conversationId)
  if (rejection === 'full') return conversationFull()
  return typeof rejection === 'object' ? wrongMode(rejection) : conversationLocked()
}
