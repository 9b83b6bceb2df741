/** Reads one conversation from the server, and follows its feed while the visitor needs it. */
import type {
  FeedEvent,
  OpenResult,
  SendResult,
  VisitorItem,
  VisitorTurn,
} from '../../../src/visitors/schema.ts'
import type { Store } from '../app-state.ts'
import { findStreaming } from '../conversation.ts'
import type { UnsentMessages } from '../unsent/unsent-messages.ts'
import { NEW, type UnsentMessage } from '../unsent/unsent-store.ts'
import { createFeed, type Feed } from './feed.ts'
import { createShownView, type ShownView } from './shown-view.ts'
import { findRunningTurn } from './view.ts'
import { isCursorRejected, isGone, type VisitorClient } from './visitor-client.ts'
import type { VisitorRecordStore } from './visitor-record.ts'
import { isTokenRejected } from './visitor-session.ts'

interface ShownConversationParts {
  readonly store: Store
  readonly record: VisitorRecordStore
  readonly unsent: UnsentMessages
  /** @throws ChatFailure */
  readonly getClient: () => VisitorClient
  readonly onItem: () => void
  /** Called for each message that the visitor has written before a reload and that was not sent. */
  readonly onUnsent: (message: UnsentMessage) => void
  /** Called when the server has deleted a conversation. */
  readonly onGone: (id: string) => void
  /** Called when the model no longer answers. */
  readonly onHandover: () => void
  /** Called before the end of a turn is shown. */
  readonly onTurnEnding: (turn: VisitorTurn) => void
  readonly onTurnEnded: (turn: VisitorTurn) => void
  readonly onLeave: () => void
  /** Called if a conversation cannot be read. */
  readonly onFailure: (thrown: unknown) => void
}

const MAX_UNREAD = 20

export class ShownConversation {
  readonly view: ShownView
  private readonly parts: ShownConversationParts
  private readonly feed: Feed
  private leaving = new AbortController()
  private cursor: string | undefined
  /** Whether the conversation must be read again before the feed can continue. */
  private isStale = false

  constructor(parts: ShownConversationParts) {
    this.parts = parts
    this.view = createShownView(parts.store, (view) => parts.unsent.follow(view, this.id() ?? NEW))
    this.feed = createFeed({
      connect: (...given) => this.connect(...given),
      onEvent: (event) => this.onEvent(event),
      onFailure: (thrown) => this.canReconnect(thrown),
    })
  }

  /** Undefined before the first message. */
  id(): string | undefined {
    return this.parts.store.get().conversationId
  }

  /** Aborts when the visitor leaves the conversation. */
  left(): AbortSignal {
    return this.leaving.signal
  }

  isUnread(id: string): boolean {
    return this.listUnread().includes(id)
  }

  /** Shows the conversation that `read` returns, or a new one if it does not exist. */
  async show(read: () => Promise<OpenResult | undefined>): Promise<void> {
    this.leave()
    const { dispatch } = this.parts.store
    const left = this.left()
    dispatch({ type: 'opening', opening: 'loading' })
    try {
      const result = await read()
      if (left.aborted) return
      if (result === undefined) {
        this.startNew()
        return this.restore()
      }
      this.setId(result.conversation.id)
      dispatch({ type: 'opening', opening: undefined })
      this.load(result)
      this.restore()
      this.updateFeed()
    } catch (thrown) {
      if (!left.aborted) this.parts.onFailure(thrown)
    }
  }

  /** Shows the messages of the conversation that were not sent before a reload. */
  restore(): void {
    const { unsent, onUnsent } = this.parts
    const isShown = (clientId: string) =>
      this.view.get().lines.some(({ client_id }) => client_id === clientId)
    unsent.restore(this.id() ?? NEW, this.left(), isShown, onUnsent)
  }

  /** Removes the messages that were not sent. */
  discardUnsent(): void {
    this.parts.unsent.discard()
  }

  /** Shows a new conversation, because the server has deleted this one. */
  replaceGone(): void {
    const id = this.id()
    this.startNew()
    if (id !== undefined) this.parts.onGone(id)
  }

  startNew(): void {
    this.leave()
    this.parts.record.change({ conversation: undefined })
  }

  /** Clears the screen. */
  leave(): void {
    const { store, onLeave } = this.parts
    const id = this.id()
    if (id !== undefined && findRunningTurn(this.view.get()) !== undefined) this.setUnread(id, true)
    this.leaving.abort()
    this.leaving = new AbortController()
    this.feed.stop()
    this.cursor = undefined
    this.isStale = false
    this.parts.unsent.leave()
    onLeave()
    store.dispatch({ type: 'conversation-id', conversationId: undefined })
    store.dispatch({ type: 'opening', opening: undefined })
    this.view.clear()
  }

  /** Adds a message that the server has accepted; the first one creates the conversation. */
  addSent(result: SendResult): void {
    this.setId(result.conversation.id)
    this.cursor ??= result.cursor
    this.view.apply({ type: 'sent', result })
    this.updateFeed()
  }

  /**
   * Keeps the feed open while the window is open, the model writes an answer, or a person answers or is
   * expected to. Stops it otherwise.
   */
  updateFeed(): void {
    const { isOpen, conversation, answering } = this.parts.store.get()
    const id = this.id()
    const isNeeded = isOpen || answering.mode !== 'model' || findStreaming(conversation) !== undefined
    if (id === undefined || this.cursor === undefined || !isNeeded) this.feed.stop()
    else if (this.feed.following() !== id) this.feed.follow(id, this.cursor)
  }

  /** Reconnects immediately. `isLost` is true if the connection was interrupted. */
  wake(isLost: boolean): void {
    this.feed.wake(isLost)
  }

  private setId(conversationId: string): void {
    const { record, store } = this.parts
    record.change({ conversation: conversationId })
    this.setUnread(conversationId, false)
    store.dispatch({ type: 'conversation-id', conversationId })
  }

  private listUnread(): readonly string[] {
    return this.parts.record.read().unread ?? []
  }

  /**
   * Marks a conversation as read or unread, in the record that holds the token. Does nothing without a token.
   */
  private setUnread(id: string, isUnread: boolean): void {
    const { record } = this.parts
    if (record.read().token === undefined || this.isUnread(id) === isUnread) return
    const others = this.listUnread().filter((one) => one !== id)
    const unread = isUnread ? [...others, id].slice(-MAX_UNREAD) : others
    record.change({ unread: unread.length === 0 ? undefined : unread })
  }

  private load(result: OpenResult): void {
    const before = this.view.get()
    this.cursor = result.cursor
    this.view.apply({ type: 'opened', result })
    this.parts.unsent.confirm(result.items)
    this.parts.onItem()
    const known = new Set(before.lines.map(({ id }) => id))
    // Messages of an earlier conversation are not new.
    if (known.size > 0) this.countPersonMessages(result.items.filter(({ id }) => !known.has(id)))
    if (before.mode === 'model' && result.conversation.mode !== 'model') this.parts.onHandover()
  }

  private countPersonMessages(items: readonly VisitorItem[]): void {
    const count = items.filter(({ type, author }) => type === 'message' && isPersonal(author)).length
    if (count > 0) this.parts.store.dispatch({ type: 'person-messages', count })
  }

  private async connect(id: string, cursor: string, signal: AbortSignal, onByte: () => void) {
    const client = this.parts.getClient()
    if (!this.isStale) return client.follow(id, cursor, signal, onByte)
    await client.startSession()
    const result = await client.open(id)
    signal.throwIfAborted()
    this.isStale = false
    this.load(result)
    return client.follow(id, result.cursor, signal, onByte)
  }

  private canReconnect(thrown: unknown): boolean {
    if (isGone(thrown)) this.replaceGone()
    else if (isCursorRejected(thrown) || isTokenRejected(thrown)) this.isStale = true
    return !isGone(thrown)
  }

  private onEvent(event: FeedEvent): void {
    this.cursor = event.id
    if (event.event === 'conversation.turn.ended') this.parts.onTurnEnding(event.data.turn)
    this.view.apply({ type: 'event', event })
    if (event.event === 'conversation.item') {
      this.parts.onItem()
      this.countPersonMessages([event.data.item])
    }
    if (event.event === 'conversation.mode' && event.data.mode !== 'model') this.parts.onHandover()
    if (event.event === 'conversation.turn.ended') this.parts.onTurnEnded(event.data.turn)
    this.updateFeed()
  }
}

/** Returns whether the author is a person, or the service, which writes if no person has answered. */
function isPersonal(author: VisitorItem['author']): boolean {
  return author === 'person' || author === 'service'
}
