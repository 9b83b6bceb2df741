/** Stores the conversation in the browser or on the server, as the agent requires. */
import type { FrameOptions } from '../options.ts'
import type { Store } from './app-state.ts'
import {
  type Chat,
  type ChatParts,
  createLocalChat,
  type LocalChat,
  type MessageActions,
} from './chat/chat.ts'
import type { Operator } from './chat/choose-server.ts'
import { createFollowUps } from './chat/follow-ups.ts'
import type { AgentSelf, Transport } from './chat/transport.ts'
import { createConnection } from './connection.ts'
import { ChatFailure } from './failure.ts'
import { createHistorySync } from './history/history.ts'
import { ServerConversation } from './server-conversation/server-conversation.ts'
import type { VisitorIdentity } from './server-conversation/visitor-identity.ts'
import type { Language } from './strings/strings.ts'
import { createDrafts, type Drafts } from './unsent/drafts.ts'
import { createOfflineRetry } from './unsent/offline-retry.ts'
import { UnsentStore } from './unsent/unsent-store.ts'

export interface Chats {
  readonly actions: Chat & {
    readonly saveDraft: Drafts['save']
    readonly messages: MessageActions
    readonly stored: Pick<
      ServerConversation,
      | 'continueAnswer'
      | 'rate'
      | 'requestPerson'
      | 'readAttachment'
      | 'createUpload'
      | 'readVisitor'
      | 'listEarlier'
      | 'showEarlier'
      | 'remove'
      | 'reopen'
    >
  }
  readonly configure: (options: FrameOptions, language: Language, pageOrigin: string) => void
  readonly setContext: (context: Readonly<Record<string, unknown>>) => void
  /** Starts a new conversation, even if the agent is still unknown. */
  readonly startNewWhenKnown: () => void
  /**
   * `logout` deletes everything that the browser stores about conversations with this agent. `resetVisitor` removes
   * only the identified user's conversation and token, because another user may have signed in.
   */
  readonly forget: (cause: 'logout' | 'resetVisitor') => void
  /** Must be called when the window has opened or closed. */
  readonly onVisibility: () => void
  /** Must be called when the network is available again. */
  readonly onOnline: () => void
}

interface ChatsParts extends Omit<ChatParts, 'readContext'> {
  readonly operator: Operator
  readonly identity: VisitorIdentity
  /** Replaces the server while the console tries a definition. */
  readonly trial?: Transport | undefined
}

export function createChats({ store, operator, identity, trial, toolRunner, onFailure }: ChatsParts): Chats {
  let context: Readonly<Record<string, unknown>> = {}
  const parts: ChatParts = { store, toolRunner, readContext: () => context, onFailure }
  const local = createLocalChat({ ...parts, waitForHome })
  const unsent = new UnsentStore()
  const retryOffline = createOfflineRetry(store, () => current().retry())
  const stored = new ServerConversation(parts, identity, unsent)
  const history = createHistorySync(store)
  const followUps = createFollowUps(store)
  const listeners = { onTransport: setTransport, onAgent: settleHome, onFailure }
  const connection = createConnection({ store, operator, identity, trial, ...listeners })
  const current = () => (store.get().home === 'server' ? stored : local)

  function setTransport(transport: Transport | undefined): void {
    local.setTransport(transport)
    // A trial traces every request, and the trace must contain only answers to the tester's messages.
    followUps.setTransport(trial === undefined ? transport : undefined)
  }

  /** @throws ChatFailure if the agent cannot be read, or if the server stores its conversations */
  async function waitForHome(): Promise<void> {
    const failure = await connection.readAgent()
    if (store.get().home !== 'browser') throw new ChatFailure(failure ?? { code: 'server' })
  }

  /**
   * Sets where the conversation is stored. If the server stores it, sends the message that the visitor wrote
   * before the agent was known.
   */
  async function settleHome(agent: AgentSelf | undefined): Promise<void> {
    const home = agent?.conversations?.stored === true ? 'server' : 'browser'
    const waiting = home === 'server' ? local.handOver() : undefined
    store.dispatch({ type: 'home', home })
    await followOwner()
    if (waiting === undefined || store.get().home !== 'server') return
    if (typeof store.get().opening === 'object') stored.startNew()
    stored.send(waiting)
  }

  /** Shows the conversation that belongs to the agent and the user in the options. */
  async function followOwner(): Promise<void> {
    const { options, home } = store.get()
    const server = connection.historyScope()
    const scope = server === undefined ? undefined : { server, user: options?.user }
    const isStored = options?.history === true
    history.follow(scope, isStored && home !== 'server')
    unsent.follow(scope, isStored, findUser(identity))
    if (home === 'server' && scope !== undefined && options?.apiKey !== undefined)
      await stored.start(options.apiKey, scope, isStored)
    else stored.end()
  }

  document.addEventListener('visibilitychange', () => document.hidden || stored.wake(false))

  return {
    actions: { ...createActions(store, local, stored), saveDraft: createDrafts(store, unsent).save },
    configure(options, language, pageOrigin) {
      connection.configure(options, language, pageOrigin)
      void followOwner()
    },
    setContext(next) {
      context = next
    },
    startNewWhenKnown() {
      void connection.readAgent().then(() => current().startNew())
    },
    forget(cause) {
      identity.reset()
      local.forget()
      unsent.clear()
      if (cause === 'resetVisitor') return stored.resetVisitor()
      history.forget()
      stored.forget()
    },
    onVisibility() {
      void connection.readAgent()
      stored.updateFeed()
    },
    onOnline() {
      void connection.readAgent()
      stored.wake(true)
      if (typeof store.get().opening === 'object') stored.reopen()
      else retryOffline()
    },
  }
}

/** Returns null for an anonymous visitor, and undefined if the page states its user when the server needs it. */
function findUser(identity: VisitorIdentity): string | null | undefined {
  return identity.user() ?? (identity.isUsed() ? undefined : null)
}

/** Directs the visitor's actions to the chat that has the conversation. */
function createActions(
  store: Store,
  local: LocalChat,
  stored: ServerConversation,
): Omit<Chats['actions'], 'saveDraft'> {
  const isStored = () => store.get().home === 'server'
  const current = () => (isStored() ? stored : local)
  return {
    send: (text, attachments) => current().send(text, attachments),
    retry: () => current().retry(),
    stop: () => current().stop(),
    startNew: () => current().startNew(),
    messages: delegate(() => (isStored() ? stored.messages : local)),
    stored,
  }
}

function delegate(current: () => MessageActions): MessageActions {
  return {
    edit: (id, text) => current().edit(id, text),
    remove: (id) => current().remove(id),
    showVersion: (id, step) => current().showVersion(id, step),
  }
}
