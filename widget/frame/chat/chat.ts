/** Sends messages to the server, one turn at a time. */

import { newId } from '../../values.ts'
import type { Store } from '../app-state.ts'
import { findStreaming } from '../conversation.ts'
import type { Failure } from '../failure.ts'
import type { ToolRunner } from '../tools/tool-runner.ts'
import { toPageMessage, toTurnMessages } from './to-messages.ts'
import type { ChatBody, Transport } from './transport.ts'
import { runTurn } from './turn.ts'

export interface Chat {
  /** Stops the running turn, and uses this transport from now on. */
  readonly setTransport: (transport: Transport | undefined) => void
  readonly setContext: (context: Readonly<Record<string, unknown>>) => void
  /** Returns whether the text was accepted; if not, the state contains the reason. */
  readonly send: (text: string) => boolean
  /** Replaces the newest reply with a new one. */
  readonly retry: () => void
  readonly startNew: () => void
  readonly stop: () => void
}

interface ChatParts {
  readonly store: Store
  readonly toolRunner: ToolRunner
  readonly onFailure: (failure: Failure) => void
}

export function createChat({ store, toolRunner, onFailure }: ChatParts): Chat {
  const { dispatch } = store
  let transport: Transport | undefined
  let context: Readonly<Record<string, unknown>> = {}
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
    return toPageMessage(options?.system, context) !== null || reject({ code: 'context_too_large' })
  }

  async function toBody(): Promise<ChatBody> {
    const tools = await toolRunner.list()
    const { conversation, options } = store.get()
    const messages = toTurnMessages(conversation.entries, options?.system, context, transport?.takesSystem)
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
  return {
    setTransport(next) {
      stop()
      transport = next
    },
    setContext(next) {
      context = next
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
    startNew() {
      stop()
      dispatch({ type: 'replaced', entries: [] })
    },
  }
}
