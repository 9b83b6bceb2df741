/** Shows the visitor's conversations that the server stores. */
import type { CreateUploadResult, OpenResult, VisitorConversation } from '../../../src/visitors/schema.ts'
import type { AppState } from '../app-state.ts'
import type { Attachment } from '../attachments/attachments.ts'
import type { Chat, ChatParts, MessageActions } from '../chat/chat.ts'
import type { Rating } from '../conversation.ts'
import { ChatFailure, toChatFailure } from '../failure.ts'
import type { StorageScope } from '../history/browser-storage.ts'
import { UnsentMessages } from '../unsent/unsent-messages.ts'
import { NEW, type UnsentStore } from '../unsent/unsent-store.ts'
import { ShownConversation } from './shown-conversation.ts'
import { Turns } from './turns.ts'
import { isRunning } from './view.ts'
import { createVisitorClient, isGone, type VisitorClient } from './visitor-client.ts'
import { userOf, type VisitorIdentity } from './visitor-identity.ts'
import { createVisitorRecordStore, type VisitorRecord, type VisitorRecordStore } from './visitor-record.ts'

export interface EarlierConversation {
  readonly id: string
  readonly title: string | null
  /** Unix seconds of the last activity. */
  readonly lastAt: number
  /** Whether the conversation continued after the visitor left it. */
  readonly isUnread: boolean
}

export interface EarlierConversations {
  /** Ordered newest first. */
  readonly conversations: readonly EarlierConversation[]
  readonly hasMore: boolean
}

export class ServerConversation implements Chat {
  private readonly parts: ChatParts
  private readonly identity: VisitorIdentity
  private readonly record: VisitorRecordStore
  private readonly turns: Turns
  private readonly shown: ShownConversation
  private readonly unsent: UnsentStore
  private client: VisitorClient | undefined
  private owner: string | undefined
  /** Whether the visitor has used this tab, or has seen a conversation in it. */
  private isUsed = false
  /** Reads the conversation that was last requested, so that `reopen` can repeat a failed attempt. */
  private readLast: () => Promise<OpenResult | undefined> = async () => undefined
  /** The page's messages that are sent when the conversation has been read, oldest first. */
  private waiting: string[] = []

  constructor(parts: ChatParts, identity: VisitorIdentity, unsent: UnsentStore) {
    this.parts = parts
    this.unsent = unsent
    this.identity = identity
    this.record = createVisitorRecordStore((record) => this.onOtherTab(record))
    const getClient = () => this.getClient()
    const messages = new UnsentMessages(unsent)
    this.turns = new Turns({ ...parts, getClient, getShown: () => this.shown, unsent: messages })
    this.shown = new ShownConversation({
      store: parts.store,
      unsent: messages,
      record: this.record,
      getClient,
      onItem: () => this.turns.onItem(),
      onUnsent: (message) => this.turns.restore(message),
      onGone: (id) => unsent.remove(id),
      onHandover: () => this.turns.onHandover(),
      onTurnEnding: (turn) => this.turns.onTurnEnding(turn),
      onTurnEnded: (turn) => this.turns.onTurnEnded(turn),
      onLeave: () => this.turns.onLeave(),
      onFailure: (thrown) => this.onOpenFailure(thrown),
    })
  }

  /**
   * Shows the visitor's last conversation. `isStored` is true if the browser may store the visitor's token.
   */
  async start(apiKey: string, scope: StorageScope, isStored: boolean): Promise<void> {
    const { options } = this.parts.store.get()
    const user = userOf(options?.visitorToken)
    const next = JSON.stringify([apiKey, scope, user])
    const isOther = next !== this.owner
    if (isOther) this.leave()
    this.record.follow(scope, isStored)
    if (!isOther) {
      if (this.identity.hasNew() && typeof this.parts.store.get().opening === 'object') this.reopen()
      return
    }
    this.owner = next
    this.isUsed = false
    this.createClient(apiKey)
    const { user: before } = this.record.read()
    // A page that has only `getVisitorToken` states its user in the exchange.
    const isKnown = user !== undefined || !this.identity.isUsed()
    if (before !== undefined && isKnown && before !== user) this.dropUser()
    await this.showLast()
  }

  private createClient(apiKey: string): void {
    const { record, identity } = this
    const client = createVisitorClient(apiKey, {
      ...{ record, identity },
      onOtherUser: () => this.dropUser(),
      isCurrent: () => this.client === client,
    })
    this.client = client
  }

  private async showLast(): Promise<void> {
    const { token, conversation } = this.record.read()
    // The user may have written on another device.
    const isReturning = conversation !== undefined || (token === undefined && this.identity.isUsed())
    const isWaiting = this.unsent.listMessages(NEW).length > 0 || this.unsent.readDraft(NEW) !== ''
    if (isReturning) await this.show(() => resume(this.getClient(), conversation, this.parts.store.get()))
    else if (token !== undefined && isWaiting) await this.show(() => this.findStarted())
    else this.shown.restore()
  }

  /**
   * Returns the conversation that an unsent first message has created, if the response was lost. The server also
   * checks that the visitor is still the same user.
   */
  private async findStarted(): Promise<OpenResult | undefined> {
    const client = this.getClient()
    const { conversation } = await client.startSession()
    const newest = conversation === null ? undefined : await findConversation(client, conversation.id)
    const waiting = new Set(this.unsent.listMessages(NEW).map(({ clientId }) => clientId))
    return newest?.items.some(({ client_id }) => waiting.has(client_id ?? '')) ? newest : undefined
  }

  /** Removes the identified user's conversation and token, and asks the page for its user. */
  resetVisitor(): void {
    const { apiKey } = this.parts.store.get().options ?? {}
    if (this.owner === undefined || apiKey === undefined || !this.identity.isUsed()) return
    this.createClient(apiKey)
    this.dropUser()
    void this.showLast()
  }

  /** Removes the conversation and the token of a user who has signed out. */
  private dropUser(): void {
    this.leave()
    this.unsent.clear()
    this.record.change({ token: undefined, user: undefined, conversation: undefined, unread: undefined })
  }

  private leave(): void {
    this.waiting = []
    this.shown.leave()
  }

  /** Leaves the conversation, because the page uses another agent. */
  end(): void {
    if (this.owner !== undefined) this.leave()
    this.owner = undefined
    this.client = undefined
  }

  /** Forgets the visitor; the server keeps the conversations until they expire. */
  forget(): void {
    if (this.owner !== undefined) this.leave()
    const { apiKey } = this.parts.store.get().options ?? {}
    if (this.client !== undefined && apiKey !== undefined) this.createClient(apiKey)
    this.record.forget()
    this.unsent.forget()
  }

  /** While the conversation is being read, a message waits; the input is disabled then, so the page sent it. */
  send(text: string, attachments?: readonly Attachment[]): boolean {
    this.isUsed = true
    if (this.parts.store.get().opening === 'loading') {
      this.waiting.push(text)
      return true
    }
    return this.turns.send(text, attachments)
  }

  get messages(): MessageActions {
    return this.turns.changes
  }

  retry(): void {
    this.turns.retry()
  }

  stop(): void {
    this.turns.stop()
  }

  continueAnswer(turnId: string): void {
    this.turns.continueAnswer(turnId)
  }

  /** Rates an answer; undefined deletes the rating. @throws ChatFailure */
  async rate(turnId: string, rating: Rating | undefined): Promise<void> {
    const { view } = this.shown
    const left = this.shown.left()
    const before = view.get().ratings.get(turnId)
    view.apply({ type: 'rated', turnId, rating })
    try {
      await this.getClient().rate(turnId, rating)
    } catch (thrown) {
      if (!left.aborted) view.apply({ type: 'rated', turnId, rating: before })
      throw thrown
    }
  }

  requestPerson(): void {
    void this.turns.requestPerson()
  }

  /** Returns an attachment of the conversation on the screen. @throws ChatFailure */
  async readAttachment(item: string, part: number): Promise<string> {
    return this.getClient().readAttachment({ conversation: this.shown.id() ?? '', item, part })
  }

  /** Reserves an upload of this size. @throws ChatFailure */
  async createUpload(filename: string, bytes: number): Promise<CreateUploadResult> {
    return this.getClient().createUpload({ filename, bytes })
  }

  /** Returns a text that identifies the visitor; undefined before the first token. */
  readVisitor(): string | undefined {
    return this.record.read().token?.split('.')[0]
  }

  startNew(): void {
    this.isUsed = true
    // Messages of an earlier conversation can still be sent when the visitor opens it again.
    if (this.shown.id() === undefined) this.shown.discardUnsent()
    this.shown.startNew()
  }

  /** Lists conversations older than the one with the id `after`. @throws ChatFailure */
  async listEarlier(after?: string): Promise<EarlierConversations> {
    if (this.record.read().token === undefined) return { conversations: [], hasMore: false }
    const { data, has_more } = await this.getClient().listConversations(after)
    const conversations = data.map((one) => toEarlier(one, this.shown.isUnread(one.id)))
    return { conversations, hasMore: has_more }
  }

  showEarlier(id: string): void {
    void this.show(() => findConversation(this.getClient(), id))
  }

  /** Deletes the conversation on the server. @throws ChatFailure */
  async remove(id: string): Promise<void> {
    await this.getClient().remove(id)
    this.unsent.remove(id)
    if (this.shown.id() === id) this.shown.startNew()
  }

  /** Reads the last conversation again after a failure. */
  reopen(): void {
    void this.show(this.readLast)
  }

  /** Opens or closes the feed after the window has been opened or closed. */
  updateFeed(): void {
    this.shown.updateFeed()
  }

  /** Reconnects immediately. `isLost` is true if the connection was interrupted. */
  wake(isLost: boolean): void {
    this.shown.wake(isLost)
    this.turns.wake()
  }

  private getClient(): VisitorClient {
    if (this.client === undefined) throw new ChatFailure({ code: 'unreachable' })
    return this.client
  }

  private async show(read: () => Promise<OpenResult | undefined>): Promise<void> {
    this.readLast = read
    this.isUsed = true
    await this.shown.show(read)
    // Another conversation may be loading by now.
    if (this.parts.store.get().opening === 'loading') return
    const texts = this.waiting
    this.waiting = []
    for (const text of texts) {
      if (!this.turns.send(text)) this.parts.store.dispatch({ type: 'prefill', text })
    }
  }

  private onOpenFailure(thrown: unknown): void {
    const { failure } = toChatFailure(thrown)
    this.parts.onFailure(failure)
    this.parts.store.dispatch({ type: 'opening', opening: failure })
  }

  private onOtherTab({ token, conversation }: VisitorRecord): void {
    if (token === undefined) this.shown.leave()
    // Shows the conversation of the other tab if the visitor has not used this tab.
    else if (!this.isUsed && conversation !== undefined) this.showEarlier(conversation)
  }
}

/**
 * Returns the conversation that was shown last. If it was deleted or is too old, returns the newest one that
 * can be resumed, if any.
 */
async function resume(
  client: VisitorClient,
  lastId: string | undefined,
  state: AppState,
): Promise<OpenResult | undefined> {
  const { conversation: newest } = await client.startSession()
  const last = lastId === undefined ? undefined : await findConversation(client, lastId)
  if ((lastId !== undefined && lastId === newest?.id) || (last !== undefined && isResumable(last, state)))
    return last
  return newest === null ? undefined : findConversation(client, newest.id)
}

async function findConversation(client: VisitorClient, id: string): Promise<OpenResult | undefined> {
  try {
    return await client.open(id)
  } catch (thrown) {
    if (isGone(thrown)) return undefined
    throw thrown
  }
}

function toEarlier({ id, title, last_at }: VisitorConversation, isUnread: boolean): EarlierConversation {
  return { id, title, lastAt: last_at, isUnread }
}

function isResumable({ conversation, turn }: OpenResult, { agent }: AppState): boolean {
  const youngestSeconds = Date.now() / 1000 - (agent?.conversations?.resume_seconds ?? 0)
  return conversation.last_at > youngestSeconds || (turn !== null && isRunning(turn))
}
