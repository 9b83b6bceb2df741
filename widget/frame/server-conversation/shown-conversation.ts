/** Reads one conversation from the server, and follows its feed while the visitor needs it. */
import type { FeedEvent, OpenResult, SendResult, VisitorTurn } from '../../../src/visitors/schema.ts'
import type { Store } from '../app-state.ts'
import { findStreaming } from '../conversation.ts'
import { createFeed } from './feed.ts'
import { createShownView, type ShownView } from './shown-view.ts'
import { findRunningTurn } from './view.ts'
import { isCursorRejected, isGone, isTokenRejected, type VisitorClient } from './visitor-client.ts'
import type { VisitorRecordStore } from './visitor-record.ts'

interface ShownConversationParts {
  readonly store: Store
  readonly record: VisitorRecordStore
  /** @throws ChatFailure */
  readonly getClient: () => VisitorClient
  readonly onItem: () => void
  readonly onTurnEnded: (turn: VisitorTurn) => void
  readonly onLeave: () => void
  /** Called if a conversation cannot be read. */
  readonly onFailure: (thrown: unknown) => void
}

export interface ShownConversation {
  readonly view: ShownView
  /** Undefined before the first message. */
  readonly id: () => string | undefined
  /** Aborts when the visitor leaves the conversation. */
  readonly left: () => AbortSignal
  /** Shows the conversation that `read` returns, or a new one if it does not exist. */
  readonly show: (read: () => Promise<OpenResult | undefined>) => Promise<void>
  /** Shows a new conversation. */
  readonly startNew: () => void
  /** Clears the screen. */
  readonly leave: () => void
  /** Adds a message that the server has accepted; the first one creates the conversation. */
  readonly addSent: (result: SendResult) => void
  /** Opens or closes the feed as needed. */
  readonly updateFeed: () => void
  /** Connects again immediately. `isLost`: the connection was interrupted. */
  readonly wake: (isLost: boolean) => void
  /** Returns whether the conversation continued after the visitor left it. */
  readonly isUnread: (id: string) => boolean
}

export function createShownConversation(parts: ShownConversationParts): ShownConversation {
  const { store, record, getClient } = parts
  const { dispatch } = store
  const view = createShownView(store)
  const feed = createFeed({ connect, onEvent, onFailure: canReconnect })
  let left = new AbortController()
  let cursor: string | undefined
  /** Whether the conversation must be read again before the feed can continue. */
  let isStale = false
  const leftRunning = new Set<string>()
  const currentId = () => store.get().conversationId

  async function connect(id: string, from: string, signal: AbortSignal, onByte: () => void) {
    if (!isStale) return getClient().follow(id, from, signal, onByte)
    await getClient().startSession()
    const result = await getClient().open(id)
    signal.throwIfAborted()
    isStale = false
    load(result)
    return getClient().follow(id, result.cursor, signal, onByte)
  }

  function canReconnect(thrown: unknown): boolean {
    if (isGone(thrown)) startNew()
    else if (isCursorRejected(thrown) || isTokenRejected(thrown)) isStale = true
    return !isGone(thrown)
  }

  function onEvent(event: FeedEvent): void {
    cursor = event.id
    view.apply({ type: 'event', event })
    if (event.event === 'conversation.item') parts.onItem()
    if (event.event === 'conversation.turn.ended') parts.onTurnEnded(event.data.turn)
    updateFeed()
  }

  function load(result: OpenResult): void {
    cursor = result.cursor
    view.apply({ type: 'opened', result })
    parts.onItem()
  }

  function setId(conversationId: string): void {
    record.change({ conversation: conversationId })
    leftRunning.delete(conversationId)
    dispatch({ type: 'conversation-id', conversationId })
  }

  function updateFeed(): void {
    const { isOpen, conversation } = store.get()
    const id = currentId()
    const isNeeded = isOpen || findStreaming(conversation) !== undefined
    if (id === undefined || cursor === undefined || !isNeeded) feed.stop()
    else if (feed.following() !== id) feed.follow(id, cursor)
  }

  function leave(): void {
    const id = currentId()
    if (id !== undefined && findRunningTurn(view.get()) !== undefined) leftRunning.add(id)
    left.abort()
    left = new AbortController()
    feed.stop()
    cursor = undefined
    isStale = false
    parts.onLeave()
    dispatch({ type: 'conversation-id', conversationId: undefined })
    dispatch({ type: 'opening', opening: undefined })
    view.clear()
  }

  function startNew(): void {
    leave()
    record.change({ conversation: undefined })
  }

  return {
    view,
    id: currentId,
    left: () => left.signal,
    async show(read) {
      leave()
      const { signal } = left
      dispatch({ type: 'opening', opening: 'loading' })
      try {
        const result = await read()
        if (signal.aborted) return
        if (result === undefined) return startNew()
        setId(result.conversation.id)
        dispatch({ type: 'opening', opening: undefined })
        load(result)
        updateFeed()
      } catch (thrown) {
        if (signal.aborted) return
        if (isGone(thrown)) startNew()
        else parts.onFailure(thrown)
      }
    },
    startNew,
    leave,
    addSent(result) {
      setId(result.conversation.id)
      cursor ??= result.cursor
      view.apply({ type: 'sent', result })
      updateFeed()
    },
    updateFeed,
    wake: feed.wake,
    isUnread: (id) => leftRunning.has(id),
  }
}
