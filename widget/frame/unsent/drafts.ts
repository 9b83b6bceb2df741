/** Keeps the text in the input for each conversation. */
import type { AppState, Store } from '../app-state.ts'
import { NEW, type UnsentStore } from './unsent-store.ts'

export interface Drafts {
  /** Must be called when the text in the input has changed. */
  readonly save: (text: string) => void
}

export function createDrafts({ get, dispatch, subscribe }: Store, unsent: UnsentStore): Drafts {
  /** Undefined until the conversation is known. */
  let conversation: string | undefined
  let text = ''
  let isUpdating = false

  function show(next: string): void {
    if (next === text) return
    text = next
    dispatch({ type: 'draft', text })
  }

  function update(): void {
    isUpdating = false
    const before = conversation
    conversation = findConversation(get())
    if (conversation === before) return
    if (conversation === undefined) show('')
    else if (before === NEW) {
      // The first message has created the conversation.
      unsent.saveDraft(NEW, '')
      unsent.saveDraft(conversation, text)
    } else if (before === undefined && text !== '') unsent.saveDraft(conversation, text)
    else show(unsent.readDraft(conversation))
  }

  subscribe(() => {
    if (isUpdating || findConversation(get()) === conversation) return
    isUpdating = true
    // Several actions change the conversation, one after the other.
    queueMicrotask(update)
  })
  unsent.subscribe(() => {
    if (conversation !== undefined) show(unsent.readDraft(conversation))
  })

  return {
    save(next) {
      text = next
      if (conversation !== undefined) unsent.saveDraft(conversation, text)
    },
  }
}

function findConversation({ home, opening, conversationId }: AppState): string | undefined {
  if (home === 'unknown') return undefined
  if (home === 'browser') return NEW
  return opening === undefined ? (conversationId ?? NEW) : undefined
}
