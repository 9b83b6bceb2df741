/** What the frame does: everything with an effect, between the page, the server and the state. */
import type { FrameMessage, PageMessage } from '../messages.ts'
import type { FrameOptions } from '../options.ts'
import {
  type AppAction,
  type AppState,
  createStore,
  initialState,
  reduceApp,
  type Store,
} from './app-state.ts'
import type { Channel } from './channel.ts'
import { createChatDesk } from './chat/chat-controller.ts'
import { chooseServer, type Operator, type Server } from './chat/choose-server.ts'
import { findStreaming, renderTranscript } from './conversation.ts'
import { ChatFailure, type Failure, isLasting, toWidgetErrorCode } from './failure.ts'
import { createKeeper } from './history.ts'
import { en } from './strings/en.ts'
import { chooseLanguage, countIn } from './strings/strings.ts'
import { createPageToolClient } from './tools/mcp-client.ts'
import { createToolDesk } from './tools/tool-runner.ts'

/** How long the server may take to tell of its agent. */
const AGENT_MS = 15_000

/** What the page and the person can do. */
export interface Session {
  readonly store: Store<AppState, AppAction>
  readonly receive: (message: PageMessage, channel: Channel) => void
  /** Whether the text was taken; otherwise the state tells why. */
  readonly send: (text: string) => boolean
  readonly stop: () => void
  /** Has the newest reply written again. */
  readonly retry: () => void
  readonly startNew: () => void
  readonly decide: (callId: string, isAllowed: boolean) => void
  readonly insert: (text: string) => void
  readonly shareMessage: (text: string) => void
  readonly shareConversation: () => void
  readonly close: () => void
}

/** The frame's session with the page it stands in; there is one. */
export function createSession(operator: Operator): Session {
  const store = createStore<AppState, AppAction>(reduceApp, initialState)
  const { dispatch } = store
  const keeper = createKeeper(store)
  const pageTools = createPageToolClient((message) => post({ type: 'mcp', message }))
  const toolDesk = createToolDesk(pageTools)
  const chat = createChatDesk({ store, toolDesk, onFailure: tellFailure })
  let channel: Channel | undefined
  let server: Server | undefined
  let beingAsked: Server | undefined

  function post(message: FrameMessage): void {
    if (store.get().options?.debug) logName('to the page', message.type)
    channel?.post(message)
  }

  function tellFailure(failure: Failure): void {
    post({ type: 'error', code: toWidgetErrorCode(failure.code), message: en.failures[failure.code] })
    if (isLasting(failure)) dispatch({ type: 'blocked', failure })
  }

  function configure(options: FrameOptions): void {
    const before = store.get().options
    const language = chooseLanguage([options.language, ...navigator.languages])
    const hasOtherServer = before === undefined || !isSameServer(before, options)
    const chosen = hasOtherServer ? chooseServer(options, operator) : server
    const failure = chosen !== undefined && 'code' in chosen ? chosen : undefined
    server = chosen === undefined || 'code' in chosen ? undefined : chosen
    const blocked = hasOtherServer ? failure : store.get().blocked
    dispatch({ type: 'configured', options, language, blocked })
    if (hasOtherServer) changeServer(failure)
    keeper.keep(server?.historyScope, options.history)
    const { openChat, closeChat, defaultTitle } = language.strings
    const words = { open: openChat, close: closeChat, window: defaultTitle }
    const isNews = before === undefined || before.language !== options.language
    if (isNews) afterRender(() => post({ type: 'ready', words }))
  }

  function changeServer(failure: Failure | undefined): void {
    chat.use(server?.transport)
    dispatch({ type: 'agent', agent: undefined })
    if (failure !== undefined) tellFailure(failure)
    else void readAgent()
  }

  /** What is missing of it is asked for again when the connection is back, and when the window is opened. */
  async function readAgent(): Promise<void> {
    const { agent, options, blocked } = store.get()
    const asked = server
    if (asked === undefined || asked === beingAsked || agent !== undefined || blocked !== undefined) return
    beingAsked = asked
    try {
      const read = await asked.transport.readAgent(AbortSignal.timeout(AGENT_MS))
      if (server !== asked) return
      const isOther = options?.agentId !== undefined && read !== undefined && read.id !== options.agentId
      if (isOther) tellFailure({ code: 'agent_mismatch' })
      else dispatch({ type: 'agent', agent: read })
    } catch (thrown) {
      if (server !== asked || !(thrown instanceof ChatFailure)) return
      if (isLasting(thrown.failure)) tellFailure(thrown.failure)
    } finally {
      beingAsked = undefined
    }
  }

  function onConnection(): void {
    dispatch({ type: 'online', isOnline: navigator.onLine })
    if (!navigator.onLine) return
    void readAgent()
    const last = store.get().conversation.entries.at(-1)
    if (last?.kind === 'reply' && last.failure?.code === 'offline') chat.retry()
  }

  window.addEventListener('online', onConnection)
  window.addEventListener('offline', onConnection)
  window.addEventListener('pagehide', keeper.flush)
  dispatch({ type: 'online', isOnline: navigator.onLine })
  let unread = 0
  store.subscribe(() => {
    const state = store.get()
    if (state.unread === unread) return
    unread = state.unread
    post({ type: 'unread', count: unread, label: unread === 0 ? '' : countIn(state.language, unread) })
  })

  return {
    store,
    receive(message, from) {
      channel = from
      if (store.get().options?.debug) logName('from the page', message.type)
      if (message.type === 'mcp') return pageTools.receive(message.message)
      if (message.type === 'context') return chat.setContext(message.context)
      if (message.type === 'focus') return dispatch({ type: 'focus' })
      if (message.type === 'visibility') {
        dispatch({ type: 'visibility', isOpen: message.isOpen })
        return void readAgent()
      }
      const isFirst = store.get().options === undefined
      configure(message.options)
      if (isFirst) pageTools.start()
    },
    send: chat.send,
    stop: chat.stop,
    retry: chat.retry,
    startNew() {
      chat.stop()
      dispatch({ type: 'replaced', entries: [] })
    },
    decide: toolDesk.decide,
    insert: (text) => post({ type: 'insert', text, close: coversPage(store.get()) }),
    shareMessage: (text) => post({ type: 'share', kind: 'message', text }),
    shareConversation() {
      const { conversation, language } = store.get()
      if (findStreaming(conversation) !== undefined) return
      post({ type: 'share', kind: 'conversation', text: renderTranscript(conversation.entries, language) })
    },
    close: () => post({ type: 'close' }),
  }
}

function isSameServer(one: FrameOptions, other: FrameOptions): boolean {
  const identity = ({ apiKey, agentId, endpoint, providerApiKey, headers }: FrameOptions) =>
    JSON.stringify([apiKey, agentId, endpoint, providerApiKey, headers])
  return identity(one) === identity(other)
}

/** On a small screen the window lies over the whole page: whoever inserts something wants to see it there. */
function coversPage({ options }: AppState): boolean {
  return options?.isInline === false && screen.width < 640
}

/** Once what was dispatched is rendered. A hidden frame is never painted, so nothing waits for that. */
function afterRender(act: () => void): void {
  setTimeout(act, 0)
}

/** Names only: never a key, never text. Decision: 11 (debug). */
function logName(direction: string, name: string): void {
  // biome-ignore lint/suspicious/noConsole: that is what the option `debug` is for
  console.debug(`parley: ${direction}: ${name}`)
}
