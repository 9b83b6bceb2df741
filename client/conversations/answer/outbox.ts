/** Keeps the messages of people until the server has stored them, even while the connection is lost. */
import { useSyncExternalStore } from 'react'
import { api, queryClient } from '../../api.ts'
import { toFailure } from '../../failure.ts'
import { pause } from '../../follow-stream.ts'
import { conversationQuery, itemsQuery, loadConversation, loadNewerItems } from '../queries.ts'

/** A message that is not stored yet, or whose stored item is not loaded yet. */
export interface Outgoing {
  /** Stays the same for each attempt, so that the server stores the message once. */
  readonly clientId: string
  readonly conversationId: string
  readonly text: string
  /** Whether a person answered when the message was written, so that it must not take the conversation over. */
  readonly isReply: boolean
  /** `waiting` after a failed attempt that will be repeated; `failed` if the server rejected the message. */
  readonly state: 'sending' | 'waiting' | 'failed' | 'stored'
  /** Unix seconds. */
  readonly writtenAt: number
  /** Why the server rejected the message. */
  readonly problem?: string
  /** True if the server rejected the message because no person answers the conversation. */
  readonly isHandedBack?: boolean
}

/** Key in `sessionStorage`, which survives a reload, but not the closing of the tab. */
const STORAGE_KEY = 'parley-outbox'

let messages: readonly Outgoing[] = readStored()
const listeners = new Set<() => void>()
/** The pauses between attempts, by conversation; aborting one repeats the attempt at once. */
const pauses = new Map<string, AbortController>()

export function useOutbox(conversationId: string): readonly Outgoing[] {
  const all = useSyncExternalStore(subscribe, () => messages)
  return all.filter((message) => message.conversationId === conversationId)
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  // Sends the messages that a reload has interrupted.
  for (const { conversationId } of messages) void drain(conversationId)
  return () => void listeners.delete(listener)
}

/** Sends a message after the earlier ones of the same conversation. */
export function send(conversationId: string, text: string, isReply: boolean): void {
  const clientId = crypto.randomUUID()
  const writtenAt = Math.floor(Date.now() / 1_000)
  change([...messages, { clientId, conversationId, text, isReply, state: 'sending', writtenAt }])
  void drain(conversationId)
}

/** Sends a message again. If the conversation was handed back, the message takes it over. */
export function retry({ clientId, conversationId, isReply, isHandedBack = false }: Outgoing): void {
  update(clientId, { state: 'sending', isReply: isReply && !isHandedBack, isHandedBack: false })
  pauses.get(conversationId)?.abort()
  void drain(conversationId)
}

export function discard({ clientId }: Pick<Outgoing, 'clientId'>): void {
  change(messages.filter((message) => message.clientId !== clientId))
}

/**
 * Marks a message as stored, and removes it after `load` has loaded the stored item. Does nothing if the
 * message is not in the outbox.
 */
export async function markStored(clientId: string, load: () => Promise<unknown>): Promise<void> {
  if (!messages.some((message) => message.clientId === clientId)) return
  update(clientId, { state: 'stored' })
  await load()
  discard({ clientId })
}

/** Sends the messages of a conversation one after another. */
async function drain(conversationId: string): Promise<void> {
  if (pauses.has(conversationId)) return
  try {
    for (let failures = 0; ; ) {
      const pausing = new AbortController()
      pauses.set(conversationId, pausing)
      const next = messages.find(
        (message) =>
          message.conversationId === conversationId && ['sending', 'waiting'].includes(message.state),
      )
      if (next === undefined) return
      const isDone = await attempt(next)
      failures = isDone ? 0 : failures + 1
      if (!isDone) await pause(failures, pausing.signal)
    }
  } finally {
    pauses.delete(conversationId)
  }
}

/** Returns false if the attempt must be repeated. */
async function attempt({ conversationId, clientId, text, isReply }: Outgoing): Promise<boolean> {
  try {
    await api.conversations.sendMessage.mutate({
      ...{ conversation_id: conversationId, client_id: clientId, text },
      ...(isReply && { if_mode: 'person' }),
    })
  } catch (thrown) {
    const { status, message, code } = toFailure(thrown)
    const isLost = status === 0 || status === 401 || status === 429 || status >= 500
    update(clientId, isLost ? { state: 'waiting' } : { state: 'failed', problem: message })
    if (!isLost) void reload(conversationId, isReply && code === 'wrong_mode' ? clientId : undefined)
    return !isLost
  }
  await markStored(clientId, () => loadSent(conversationId))
  return true
}

/** Loads the conversation after it has rejected a message, which may be because no person answers it. */
async function reload(conversationId: string, replyId: string | undefined): Promise<void> {
  await loadConversation(queryClient, conversationId).catch(() => undefined)
  const mode = queryClient.getQueryData(conversationQuery(conversationId).queryKey)?.parley?.mode
  if (replyId !== undefined && mode !== 'person') update(replyId, { isHandedBack: true })
}

async function loadSent(conversationId: string): Promise<void> {
  const isOpen = queryClient.getQueryData(itemsQuery(conversationId).queryKey) !== undefined
  if (!isOpen) return
  await Promise.allSettled([
    loadNewerItems(queryClient, conversationId),
    loadConversation(queryClient, conversationId),
  ])
}

function update(clientId: string, changes: Partial<Outgoing>): void {
  change(messages.map((message) => (message.clientId === clientId ? { ...message, ...changes } : message)))
}

function change(next: readonly Outgoing[]): void {
  messages = next
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(messages))
  } catch {
    // Without storage, a reload loses the unsent messages.
  }
  for (const listener of listeners) listener()
}

function readStored(): Outgoing[] {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? '[]')
  } catch {
    return []
  }
}
