/** Shows the visitor's conversations that the server stores. */
import type { OpenResult, VisitorConversation } from '../../../src/visitors/schema.ts'
import type { AppState } from '../app-state.ts'
import type { Chat, ChatParts } from '../chat/chat.ts'
import { ChatFailure, toChatFailure } from '../failure.ts'
import type { StorageScope } from '../history/browser-storage.ts'
import { ShownConversation } from './shown-conversation.ts'
import { Turns } from './turns.ts'
import { isRunning } from './view.ts'
import { createVisitorClient, isGone, type VisitorClient } from './visitor-client.ts'
import { createVisitorRecordStore, type VisitorRecord } from './visitor-record.ts'

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

export interface ServerConversation extends Chat, Pick<Turns, 'continueAnswer'> {
  /** Shows the visitor's last conversation. `isStored`: whether the browser may store the visitor's token. */
  readonly start: (apiKey: string, scope: StorageScope, isStored: boolean) => Promise<void>
  /** Leaves the conversation, because the page uses another agent. */
  readonly end: () => void
  /** Forgets the visitor; the server keeps the conversations until they expire. */
  readonly forget: () => void
  /** Lists conversations older than the one with the id `after`. @throws ChatFailure */
  readonly listEarlier: (after?: string) => Promise<EarlierConversations>
  readonly showEarlier: (id: string) => void
  /** Deletes the conversation on the server. @throws ChatFailure */
  readonly remove: (id: string) => Promise<void>
  /** Reads the last conversation again after a failure. */
  readonly reopen: () => void
  /** Opens or closes the feed after the window has been opened or closed. */
  readonly updateFeed: () => void
  /** Connects again immediately. `isLost`: the connection was interrupted. */
  readonly wake: (isLost: boolean) => void
}

export function createServerConversation(parts: ChatParts): ServerConversation {
  const { store, onFailure } = parts
  const record = createVisitorRecordStore(onOtherTab)
  const turns = new Turns({ ...parts, getClient, getShown: () => shown })
  const shown: ShownConversation = new ShownConversation({
    store,
    record,
    getClient,
    onItem: () => turns.onItem(),
    onTurnEnded: (turn) => turns.onTurnEnded(turn),
    onLeave: () => turns.onLeave(),
    onFailure(thrown) {
      const { failure } = toChatFailure(thrown)
      onFailure(failure)
      store.dispatch({ type: 'opening', opening: failure })
    },
  })
  let client: VisitorClient | undefined
  let owner: string | undefined
  /** Whether the visitor has used this tab, or has seen a conversation in it. */
  let isUsed = false
  /** Reads the conversation that could not be read. */
  let readLast: () => Promise<OpenResult | undefined> = async () => undefined

  function getClient(): VisitorClient {
    if (client === undefined) throw new ChatFailure({ code: 'unreachable' })
    return client
  }

  function show(read: typeof readLast): Promise<void> {
    readLast = read
    isUsed = true
    return shown.show(read)
  }

  function onOtherTab({ token, conversation }: VisitorRecord): void {
    if (token === undefined) shown.leave()
    // Shows what the visitor writes in the other tab, if the visitor has not used this one.
    else if (!isUsed && conversation !== undefined)
      void show(() => findConversation(getClient(), conversation))
  }

  return {
    send(text) {
      isUsed = true
      return turns.send(text)
    },
    retry: turns.retry,
    stop: turns.stop,
    continueAnswer: turns.continueAnswer,
    startNew() {
      isUsed = true
      shown.startNew()
    },
    updateFeed: () => shown.updateFeed(),
    wake: (isLost) => shown.wake(isLost),
    async start(apiKey, scope, isStored) {
      const next = JSON.stringify([apiKey, scope])
      if (next !== owner) shown.leave()
      record.follow(scope, isStored)
      if (next === owner) return
      owner = next
      isUsed = false
      client = createVisitorClient(apiKey, record)
      const { conversation } = record.read()
      if (conversation !== undefined) await show(() => resume(getClient(), conversation, store.get()))
    },
    end() {
      if (owner !== undefined) shown.leave()
      owner = client = undefined
    },
    forget() {
      if (owner !== undefined) shown.leave()
      record.forget()
    },
    async listEarlier(after) {
      if (record.read().token === undefined) return { conversations: [], hasMore: false }
      const { data, has_more } = await getClient().listConversations(after)
      const conversations = data.map((one) => toEarlier(one, shown.isUnread(one.id)))
      return { conversations, hasMore: has_more }
    },
    showEarlier: (id) => void show(() => findConversation(getClient(), id)),
    async remove(id) {
      await getClient().remove(id)
      if (shown.id() === id) shown.startNew()
    },
    reopen: () => void show(readLast),
  }
}

/** Returns the visitor's last conversation, or the newest one if that is too old to be shown again. */
async function resume(
  client: VisitorClient,
  lastId: string,
  state: AppState,
): Promise<OpenResult | undefined> {
  const { conversation: newest } = await client.startSession()
  const last = await findConversation(client, lastId)
  if (lastId === newest?.id || (last !== undefined && isResumable(last, state))) return last
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
