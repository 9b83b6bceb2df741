/** Sends messages to the server, one turn at a time, and keeps the conversation in the browser. */

import { newId } from '../../values.ts'
import type { Store } from '../app-state.ts'
import { findStreaming } from '../conversation.ts'
import type { Failure } from '../failure.ts'
import type { ToolRunner } from '../tools/tool-runner.ts'
import { toPageMessage, toTurnMessages } from './to-messages.ts'
import type { ChatBody, Transport } from './transport.ts'
import { runTurn } from './turn.ts'

/** What the visitor can do with the conversation on the screen, wherever it is stored. */
export interface Chat {
  /** Returns whether the text was accepted; if not, the state contains the reason. */
  readonly send: (text: string) => boolean
  /** Replaces the newest reply with a new one. */
  readonly retry: () => void
  readonly startNew: () => void
  readonly stop: () => void
}

/** What every chat needs. */
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
  /** Stops the running turn and removes all messages. Returns the message that waits for its first answer. */
  readonly handOver: () => string | undefined
}

interface LocalChatParts extends ChatParts {
  /** Resolves when the agent's conversations are known to belong in the browser. @throws ChatFailure */
  readonly waitForHome: () => Promise<void>
}

/** Creates the chat whose conversation the browser stores and sends with each message. */
export function createLocalChat({
  store,
  toolRunner,
  readContext,
  onFailure,
  waitForHome,
}: LocalChatParts): LocalChat {
  const { dispatch } = store
  let transport: Transport | undefined
  let running: AbortController | undefined

  function reject(failure: Failure): false {
    dispatch({ type: 'noticed', failure })
    onFailure(failure)
    return false
  }

  /** Returns whether a turn can start; reports a context that is too large. */
  function canStart(): boolean {
    const { blocked, conversation, options } = store.get()
    if (transport === undefined || blocked !== undefined) return false
    if (findStreaming(conversation) !== undefined) return false
    return toPageMessage(options?.system, readContext()) !== null || reject({ code: 'context_too_large' })
  }

  async function toBody(): Promise<ChatBody> {
    await waitForHome()
    const tools = await toolRunner.list()
    const { conversation, options } = store.get()
    const { entries } = conversation
    const messages = toTurnMessages(entries, options?.system, readContext(), transport?.takesSystem)
    const model = options?.model === undefined ? {} : { model: options.model }
    return { ...model, messages, ...(tools.length > 0 && { tools }) }
  }

  async function start(replyId: string): Promise<void> {
    const controller = new AbortController()
    const { signal } = controller
    running = controller
    const failure = await runTurn({
      replyId,
      transport: transport as Transport,
      signal,
      toBody,
      dispatch,
      callTools: (calls) =>
        toolRunner.answer(
          calls,
          (callId, change) => dispatch({ type: 'call-changed', replyId, callId, change }),
          signal,
        ),
    })
    if (running === controller) running = undefined
    if (failure !== undefined) onFailure(failure)
  }

  const stop = () => running?.abort()

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
      const { conversation } = store.get()
      const isWaiting = findStreaming(conversation) !== undefined
      const question = conversation.entries.findLast((entry) => entry.kind === 'user')
      startNew()
      return isWaiting ? question?.text : undefined
    },
  }
}
