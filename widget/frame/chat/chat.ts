/** Sends messages to the server, one turn at a time, and keeps the conversation in the browser. */

import { newId } from '../../values.ts'
import type { AppState, Store } from '../app-state.ts'
import { findStreaming } from '../conversation.ts'
import type { Failure } from '../failure.ts'
import type { ChangeCall, ToolRunner } from '../tools/tool-runner.ts'
import { toPageMessage, toTurnMessages } from './to-messages.ts'
import type { ChatBody, Transport } from './transport.ts'
import { runTurn } from './turn.ts'

/** The visitor's actions on the conversation on the screen, for both places that can store it. */
export interface Chat {
  /** Returns whether the text was accepted; if not, the state contains the reason. */
  readonly send: (text: string) => boolean
  /** Replaces the newest reply with a new one. */
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

interface LocalChat extends Chat {
  /** Stops the running turn, and uses this transport from now on. */
  readonly setTransport: (transport: Transport | undefined) => void
  /** Stops the running turn and removes all messages. Returns the message that waits until the agent is known. */
  readonly handOver: () => string | undefined
}

interface LocalChatParts extends ChatParts {
  /** Resolves when the agent's conversations are known to belong in the browser. @throws ChatFailure */
  readonly waitForHome: () => Promise<void>
}

/** Creates the chat whose conversation the browser stores and sends with each message. */
export function createLocalChat(parts: LocalChatParts): LocalChat {
  const { store, toolRunner, readContext, onFailure } = parts
  const { dispatch } = store
  let transport: Transport | undefined
  /** The message that waits until the agent is known. */
  let unsent: string | undefined
  let running: AbortController | undefined

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

  async function start(replyId: string): Promise<void> {
    const controller = new AbortController()
    running = controller
    const { signal } = controller
    const changeCall: ChangeCall = (callId, change) =>
      dispatch({ type: 'call-changed', replyId, callId, change })
    const failure = await runTurn({
      replyId,
      transport: transport as Transport,
      signal,
      toBody,
      dispatch,
      callTools: (calls) => toolRunner.answer(calls, changeCall, signal),
    })
    if (running === controller) running = undefined
    if (failure !== undefined) onFailure(failure)
  }

  function stop(): void {
    unsent = undefined
    running?.abort()
  }

  function startNew(): void {
    stop()
    dispatch({ type: 'replaced', entries: [] })
  }

  return {
    setTransport(next) {
      stop()
      transport = next
    },
    send(text) {
      if (!canStart()) return false
      const replyId = newId()
      unsent = text
      dispatch({ type: 'asked', id: newId(), text, replyId })
      void start(replyId)
      return true
    },
    retry() {
      const last = store.get().conversation.entries.at(-1)
      if (last === undefined || !canStart()) return
      const replyId = newId()
      dispatch({ type: 'asked-again', replyId })
      void start(replyId)
    },
    stop,
    startNew,
    handOver() {
      const text = unsent
      startNew()
      return text
    },
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
