/** Creates and reads the items that record which turns a visitor has replaced (ADR 0076). */
import { newId, type Random } from '../../lib/ids.ts'
import type { ItemRow, NewItem } from '../item-store.ts'

const ID_LENGTH = 24
const MARK = '[Sent by the service, not by the user]'

/** The visitor's action: changed a message, requested another answer, or removed a message. */
export type Replacing = 'edited' | 'regenerated' | 'removed'

export interface ReplacementEntry {
  readonly how: Replacing
  /** Ids of the turns that left the conversation's history, oldest first. */
  readonly turns: readonly string[]
}

const texts: Readonly<Record<Replacing, string>> = {
  edited: 'The visitor changed an earlier message.',
  regenerated: 'The visitor requested another answer.',
  removed: 'The visitor removed a message and its answer.',
}

/** Creates the item of a replacement. Feeds show it as a `conversation.replaced` event; models do not receive it. */
export function toReplacementItem(replacement: ReplacementEntry, random: Random): NewItem {
  const id = newId('msg_', ID_LENGTH, random)
  return {
    ...{ id, type: 'message', role: 'user', author: 'service', status: 'completed' },
    body: {
      ...{ type: 'message', id, role: 'user', status: 'completed' },
      content: [{ type: 'input_text', text: `${MARK} ${texts[replacement.how]}` }],
      replacement,
    },
    isForVisitor: false,
    isForModel: false,
  }
}

/** Returns the replacement that an item records; undefined for other items. */
export function findReplacement({
  author,
  type,
  body,
}: Pick<ItemRow, 'author' | 'type' | 'body'>): ReplacementEntry | undefined {
  if (author !== 'service' || type !== 'message') return undefined
  return (JSON.parse(body) as { readonly replacement?: ReplacementEntry }).replacement
}
