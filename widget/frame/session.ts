/** What the frame does: everything with an effect, between the page, the server and the state. */
import type { PageMessage } from '../messages.ts'
import type { FrameOptions } from '../options.ts'
import { type AppAction, type AppState, initialState, reduceApp } from './app-state.ts'
import type { Channel } from './channel.ts'
import { createRpcTransport } from './chat/rpc.ts'
import type { ChatBody, Transport } from './chat/transport.ts'
import { runTurn } from './chat/turn.ts'
import { findStreaming } from './conversation/state.ts'
import { toMessages } from './conversation/to-messages.ts'
import { ChatFailure, type Failure, isLasting, toWidgetErrorCode } from './failure.ts'
import { createStore, type Store } from './store.ts'

/** What a person can do. */
export interface Session {
  readonly store: Store<AppState, AppAction>
  readonly receive: (message: PageMessage, channel: Channel) => void
  /** Whether the text was taken. */
  readonly send: (text: string) => boolean
  readonly stop: () => void
  readonly close: () => void
}

export function createSession(): Session {
  const store = createStore<AppState, AppAction>(reduceApp, initialState)
  const { dispatch } = store
  let channel: Channel | undefined
  let transport: Transport | undefined
  let running: AbortController | undefined

  function fail(failure: Failure): void {
    channel?.post({ type: 'error', code: toWidgetErrorCode(failure.code), message: failure.code })
  }

  function configure(options: FrameOptions): void {
    const blocked: Failure | undefined =
      options.apiKey === undefined ? { code: 'missing_api_key' } : undefined
    transport = options.apiKey === undefined ? undefined : createRpcTransport(options.apiKey)
    dispatch({ type: 'configured', options, blocked })
    if (blocked !== undefined) fail(blocked)
    else void readAgent()
  }

  async function readAgent(): Promise<void> {
    try {
      const agent = await transport?.readAgent(AbortSignal.timeout(15_000))
      dispatch({ type: 'agent', agent })
    } catch (thrown) {
      if (!(thrown instanceof ChatFailure) || !isLasting(thrown.failure)) return
      dispatch({ type: 'blocked', failure: thrown.failure })
      fail(thrown.failure)
    }
  }

  function toBody(): ChatBody {
    const { conversation, options } = store.get()
    const messages = toMessages(conversation.entries.slice(0, -1), undefined)
    return { messages, ...(options?.model === undefined ? {} : { model: options.model }) }
  }

  function send(text: string): boolean {
    const { blocked, conversation } = store.get()
    if (transport === undefined || blocked !== undefined || findStreaming(conversation) !== undefined)
      return false
    const replyId = crypto.randomUUID()
    dispatch({ type: 'asked', id: crypto.randomUUID(), text, replyId })
    running = new AbortController()
    const turn = { replyId, transport, signal: running.signal, toBody, dispatch, callTools: async () => {} }
    void runTurn(turn).then((failure) => failure && fail(failure))
    return true
  }

  return {
    store,
    send,
    receive(message, from) {
      const isFirst = channel === undefined
      channel = from
      switch (message.type) {
        case 'configure':
          configure(message.options)
          if (isFirst) requestAnimationFrame(() => from.post({ type: 'ready' }))
          break
        case 'visibility':
          dispatch({ type: 'visibility', isOpen: message.isOpen })
          break
        case 'focus':
          dispatch({ type: 'focus' })
          break
      }
    },
    stop: () => running?.abort(),
    close: () => channel?.post({ type: 'close' }),
  }
}
