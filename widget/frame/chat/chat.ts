/** Sends messages to the server, one turn at a time, and keeps the conversation in the browser. */

import { newId } from '../../values.ts'
import type { AppState, Store } from '../app-state.ts'
import type { Attachment } from '../attachments/attachments.ts'
import { type ConversationAction, findStreaming, type ToolCall } from '../conversation.ts'
import type { Failure } from '../failure.ts'
import type { ChangeCall, ToolRunner } from '../tools/tool-runner.ts'
import { toPageMessage, toTurnMessages } from './to-messages.ts'
import type { ChatBody, Transport } from './transport.ts'
import { runTurn } from './turn.ts'

/** The visitor's actions on the shown conversation, whether the browser or the server stores it. */
export interface Chat {
  /** Returns whether the text was accepted; if not, the state contains the reason. */
  readonly send: (text: string, attachments?: readonly Attachment[]) => boolean
  /** Requests another reply to the newest message, for example after a failure. */
  readonly retry: () => void
  readonly startNew: () => void
  readonly stop: () => void
}

/** The dependencies of each chat. */
export interface ChatParts {
  readonly store: Store
  readonly toolRunner: ToolRunner
  /** Returns the page's context for the next turn. */
  readonly readContext: () => Readonly<Record<string, unknown>>
  readonly onFailure: (failure: Failure) => void
}

/** The visitor's actions on earlier messages and answers. */
export interface MessageActions {
  /** Replaces a message and everything after it. Returns whether the text was accepted. */
  readonly edit: (id: string, text: string) => boolean
  /** Removes a message and its reply, unless a reply is being written. */
  readonly remove: (id: string) => void
  /** Shows the version of a reply before (-1) or after (1) the current one. */
  readonly showVersion: (replyId: string, step: -1 | 1) => void
}

export interface LocalChat extends Chat, MessageActions {
  /** Stops the running turn, and removes the token of the page's user. */
  readonly forget: () => void
  /** Stops the running turn, and uses this transport from now on. */
  readonly setTransport: (transport: Transport | undefined) => void
  /**
   * Stops the running turn and removes all messages. Returns the message that waits until the agent is known.
   */
  readonly handOver: () => string | undefined
}

interface LocalChatParts extends ChatParts {
  /**
   * Resolves when it is known that the browser stores the agent's conversations. @throws ChatFailure if it
   * does not, or if the agent cannot be read
   */
  readonly waitForHome: () => Promise<void>
}

/** Creates the chat whose conversation the browser stores and sends with each message. */
export function createLocalChat(parts: LocalChatParts): LocalChat {
  const { store, toolRunner, readContext } = parts
  const { dispatch } = store
  let transport: Transport | undefined
  /** The message that waits until the agent is known. */
  let unsent: string | undefined
  const turns = createTurns(parts)

  /** Returns whether a turn can start; reports a context that is too large. */
  function canStart(): boolean {
    const { blocked, conversation, options } = store.get()
    if (transport === undefined || blocked !== undefined) return false
    if (findStreaming(conversation) !== undefined) return false
    return toPageMessage(options?.system, readContext()) !== null || rejectContext(parts)
  }

  async function toBody(): Promise<ChatBody> {
    await parts.waitForHome()
    unsent = undefined
    const tools = await toolRunner.list()
    return renderBody(store.get(), readContext(), tools, transport?.takesSystem)
  }

  function stop(): void {
    unsent = undefined
    turns.stop()
  }

  function startNew(): void {
    stop()
    toolRunner.forgetDecisions()
    dispatch({ type: 'replaced', entries: [] })
  }

  function ask(text: string, attachments: readonly Attachment[] = []): void {
    const replyId = newId()
    unsent = text
    dispatch({ type: 'asked', id: newId(), text, attachments, replyId, atMs: Date.now() })
    void turns.start(replyId, transport as Transport, toBody)
  }

  return {
    setTransport(next) {
      stop()
      transport = next
    },
    send(text, attachments) {
      if (!canStart()) return false
      ask(text, attachments)
      return true
    },
    retry() {
      const last = store.get().conversation.entries.at(-1)
      if (last === undefined || !canStart()) return
      const replyId = newId()
      dispatch({ type: 'asked-again', replyId, atMs: Date.now() })
      void turns.start(replyId, transport as Transport, toBody)
    },
    ...createMessageActions(store, (id, text) => {
      if (!canStart()) return false
      const edited = store.get().conversation.entries.find((entry) => entry.id === id)
      dispatch({ type: 'cut', id })
      ask(text, edited?.kind === 'user' ? edited.attachments : undefined)
      return true
    }),
    stop,
    startNew,
    forget() {
      stop()
      transport?.forgetVisitor?.()
    },
    handOver() {
      const text = unsent
      startNew()
      return text
    },
  }
}

/** Runs one turn at a time. */
function createTurns({ store, toolRunner, onFailure }: ChatParts) {
  const { dispatch } = store
  let running: AbortController | undefined
  return {
    stop: () => running?.abort(),
    async start(replyId: string, transport: Transport, toBody: () => Promise<ChatBody>): Promise<void> {
      const controller = new AbortController()
      running = controller
      const { signal } = controller
      const changeCall: ChangeCall = (callId, change) =>
        dispatch({ type: 'call-changed', replyId, callId, change })
      const callTools = (calls: readonly ToolCall[]) => toolRunner.answer(calls, changeCall, signal)
      const failure = await runTurn({ replyId, transport, signal, toBody, dispatch, callTools })
      if (running === controller) running = undefined
      if (failure !== undefined) onFailure(failure)
    },
  }
}

function createMessageActions(store: Store, edit: MessageActions['edit']): MessageActions {
  function dispatchIfIdle(action: ConversationAction): void {
    if (findStreaming(store.get().conversation) === undefined) store.dispatch(action)
  }
  return {
    edit,
    remove: (id) => dispatchIfIdle({ type: 'removed', id }),
    showVersion: (replyId, step) => dispatchIfIdle({ type: 'version', replyId, step }),
  }
}

function rejectContext({ store, onFailure }: ChatParts): false {
  const failure: Failure = { code: 'context_too_large' }
  store.dispatch({ type: 'noticed', failure })
  onFailure(failure)
  return false
}

function renderBody(
  { conversation, options }: AppState,
  context: Readonly<Record<string, unknown>>,
  tools: readonly object[],
  takesSystem: boolean | undefined,
): ChatBody {
  const messages = toTurnMessages(conversation.entries, options?.system, context, takesSystem)
  const model = options?.model === undefined ? {} : { model: options.model }
  return { ...model, messages, ...(tools.length > 0 && { tools }) }
}
