/** Defines the transactions in which turns leave a conversation's history (ADR 0076). */
import type { ConversationDb, Procedure } from '../../db/open.ts'
import { type EncodedItem, insertItems, updateTitle } from '../item-store.ts'
import { type ConversationRow, findConversation } from '../store.ts'
import { MAX_ITEMS } from '../turns/statements.ts'
import type { Replacement } from './exchanges.ts'

/**
 * Marks the turns of a range as replaced by the turn `by`, or as removed if it is null. Turns that follow
 * the range then follow the turn before it.
 */
export async function markReplaced(
  trx: ConversationDb,
  conversationId: string,
  { how, from, to }: Replacement,
  by: string | null,
): Promise<void> {
  const before = await trx
    .selectFrom('turns')
    .select('id')
    .where('conversation_id', '=', conversationId)
    .where('number', '<', from)
    .where('is_branch', '=', 0)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
  await trx
    .updateTable('turns')
    .set({ previous_id: before?.id ?? null })
    .where('conversation_id', '=', conversationId)
    .where('number', '>', to)
    .where('previous_id', 'in', (eb) =>
      eb
        .selectFrom('turns as replaced_turns')
        .select('replaced_turns.id')
        .where('replaced_turns.conversation_id', '=', conversationId)
        .where('replaced_turns.number', '>=', from)
        .where('replaced_turns.number', '<=', to),
    )
    .execute()
  await trx
    .updateTable('turns')
    .set({ replaced: how, replaced_by: by, is_branch: 1 })
    .where('conversation_id', '=', conversationId)
    .where('number', '>=', from)
    .where('number', '<=', to)
    .where((eb) => eb.or([eb('replaced', 'is', null), eb('replaced', '=', 'regenerated')]))
    .execute()
}

interface Removal {
  readonly tenantId: string
  readonly conversationId: string
  /** The revision of the conversation from which the range was read. */
  readonly revision: number
  readonly replacement: Replacement
  /** The item of the replacement. */
  readonly item: EncodedItem
  readonly nowSeconds: number
}

/** Why nothing was removed; a mode and assignee if the model does not answer. */
export type RemovalRejection =
  | 'missing'
  | 'locked'
  | 'changed'
  | 'full'
  | Pick<ConversationRow, 'mode' | 'assignee'>

/** Removes turns from the history of a conversation. The turns and their items remain in the log. */
export const removeTurns: Procedure<Removal, RemovalRejection | undefined> = {
  file: import.meta.url,
  name: 'removeTurns',
  async run(trx, { tenantId, conversationId, revision, replacement, item, nowSeconds }) {
    // Locks the row, so that no turn starts before the transaction ends.
    const locked = await trx
      .updateTable('conversations')
      .set((eb) => ({ revision: eb('revision', '+', 1) }))
      .where('id', '=', conversationId)
      .where('revision', '=', revision)
      .where('mode', '=', 'model')
      .where('busy_turn', 'is', null)
      .where('items', '<', MAX_ITEMS)
      .executeTakeFirst()
    if (locked.numUpdatedRows === 0n) return explain(trx, { tenantId, conversationId, revision })
    await markReplaced(trx, conversationId, replacement, null)
    await insertItems(trx, { conversationId, turnId: null, nowSeconds }, { items: [item], data: [] })
    await updateTitle(trx, conversationId)
    return undefined
  },
}

async function explain(
  trx: ConversationDb,
  { tenantId, conversationId, revision }: Pick<Removal, 'tenantId' | 'conversationId' | 'revision'>,
): Promise<RemovalRejection> {
  const row = await findConversation(trx, tenantId, conversationId)
  if (row === undefined) return 'missing'
  if (row.mode !== 'model') return { mode: row.mode, assignee: row.assignee }
  if (row.busy_turn !== null) return 'locked'
  return Number(row.revision) === revision ? 'full' : 'changed'
}
