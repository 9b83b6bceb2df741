/** Sends what the person says, and looks after the turn that runs: there is one at most. */

import { newId } from '../../values.ts'
import type { AppAction, AppState, Store } from '../app-state.ts'
import { findStreaming } from '../conversation.ts'
import type { Failure } from '../failure.ts'
import type { ToolDesk } from '../tools/tool-runner.ts'
import { toMessages, toPageMessage } from './to-messages.ts'
import type { ChatBody, Transport } from './transport.ts'
import { runTurn } from './turn.ts'

interface ChatDesk {
  /** From now on; a turn that runs is stopped. */
  readonly use: (transport: Transport | undefined) => void
  readonly setContext: (context: Readonly<Record<string, unknown>>) => void
  /** Whether the text was taken. */
  readonly send: (text: string) => boolean
  readonly retry: () => void
  readonly stop: () => void
}

interface Surroundings {
  readonly store: Store<AppState, AppAction>
  readonly toolDesk: ToolDesk
  readonly onFailure: (failure: Failure) => void
}

export function createChatDesk({ store, toolDesk, onFailure }: Surroundings): ChatDesk {
  const { dispatch } = store
  let transport: Transport | undefined
  let context: Readonly<Record<string, unknown>> = {}
  let running: AbortController | undefined

  function refuse(failure: Failure): false {
    dispatch({ type: 'noticed', failure })
    onFailure(failure)
    return false
  }

  /** Whether a turn can begin; tells the person what is in the way. */
  function canBegin(): boolean {
    const { blocked, conversation, options } = store.get()
    if (transport === undefined || blocked !== undefined) return false
    if (findStreaming(conversation) !== undefined) return false
    return toPageMessage(options?.system, context) !== null || refuse({ code: 'context_too_large' })
  }

  async function toBody(): Promise<ChatBody> {
    const tools = await toolDesk.list()
    const { conversation, options } = store.get()
    const messages = toMessages(conversation.entries, toPageMessage(options?.system, context) ?? undefined)
    const model = options?.model === undefined ? {} : { model: options.model }
    return { ...model, messages, ...(tools.length === 0 ? {} : { tools }) }
  }

  async function begin(replyId: string): Promise<void> {
    const leaving = new AbortController()
    running = leaving
    const { signal } = leaving
    const failure = await runTurn({
      replyId,
      transport: transport as Transport,
      signal,
      toBody,
      dispatch,
      callTools: (calls) =>
        toolDesk.answer(
          calls,
          (callId, change) => dispatch({ type: 'call-changed', replyId, callId, change }),
          signal,
        ),
    })
    if (running === leaving) running = undefined
    if (failure !== undefined) onFailure(failure)
  }

  const stop = () => running?.abort()
  return {
    use(next) {
      stop()
      transport = next
    },
    setContext(next) {
      context = next
    },
    send(text) {
      if (!canBegin()) return false
      const replyId = newId()
      dispatch({ type: 'asked', id: newId(), text, replyId })
      void begin(replyId)
      return true
    },
    retry() {
      const last = store.get().conversation.entries.at(-1)
      if (last === undefined || !canBegin()) return
      const replyId = newId()
      dispatch({ type: 'asked-again', replyId })
      void begin(replyId)
    },
    stop,
  }
}
