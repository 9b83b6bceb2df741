/** Creates the errors of conversations that people answer. */
import { ServiceError } from '../../lib/errors.ts'
import { toShownItem } from '../feed/render.ts'
import type { ItemRow } from '../item-store.ts'
import type { Mode } from './mode-items.ts'

const states: Readonly<Record<Mode, string>> = {
  model: 'The model answers this conversation.',
  waiting: 'This conversation waits for a person.',
  person: 'A person answers this conversation.',
}

export interface ModeState {
  readonly mode: Mode
  readonly assignee: string | null
}

/** Creates the error for a request that needs another mode of the conversation. */
export function wrongMode({ mode, assignee }: ModeState): ServiceError {
  return new ServiceError('conflict', states[mode], { code: 'wrong_mode', handover: { mode, assignee } })
}

/** Removes the assignee from an error, because visitors and pages must not see it. */
export function withoutAssignee(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.details.handover === undefined) return error
  return wrongMode({ ...error.details.handover, assignee: null })
}

export function conversationMissing(id: string): ServiceError {
  return new ServiceError('not_found', `Conversation with id '${id}' not found.`, {
    param: 'conversation_id',
  })
}

/** @throws ServiceError if the item with the request's client id is a different message */
export function assertSameText(
  item: ItemRow,
  { text, author }: { readonly text: string; readonly author: ItemRow['author'] },
): void {
  if (item.author === author && item.turn_id === null && toShownItem(item).text === text) return
  throw new ServiceError(
    'idempotency_key_reused',
    'client_id: was used for a different message in this conversation; send a new client_id.',
    { param: 'client_id' },
  )
}
