/** Connects the page, the server and the frame's state. */
import type { FrameMessage, LauncherWords, PageMessage } from '../messages.ts'
import type { FrameOptions } from '../options.ts'
import { publicPartOf } from '../values.ts'
import { type AppState, createStore, type Store } from './app-state.ts'
import type { Channel } from './channel.ts'
import type { Operator } from './chat/choose-server.ts'
import { type Chats, createChats } from './chats.ts'
import { checkOptions, needsOtherAddress } from './check-options.ts'
import { textOn } from './contrast.ts'
import { findStreaming, renderTranscript } from './conversation.ts'
import { type Failure, isLasting, toWidgetErrorCode } from './failure.ts'
import { createVisitorIdentity } from './server-conversation/visitor-identity.ts'
import { createSharing, findShareTarget, type ShareOutcome } from './sharing.ts'
import { en } from './strings/en.ts'
import { chooseLanguage, countIn, type Language, loadLanguage } from './strings/strings.ts'
import { resolveTheme, type Theme } from './theme.ts'
import { createPageToolClient } from './tools/mcp-client.ts'
import { createToolRunner, type ToolRunner } from './tools/tool-runner.ts'
import type { Trial } from './trial/trial.ts'

/** The actions that the page and the visitor can take. */
export type Session = Chats['actions'] & {
  readonly store: Store
  readonly themeOf: (options: FrameOptions) => Theme
  readonly receive: (message: PageMessage, channel: Channel) => void
  readonly decide: ToolRunner['decide']
  readonly insert: (text: string) => void
  readonly shareMessage: (text: string) => Promise<ShareOutcome>
  readonly shareConversation: () => Promise<ShareOutcome | undefined>
  readonly close: () => void
  /** Switches between the window and the side panel. */
  readonly toggleExpanded: () => void
}

/** Creates the session between the frame and its host page; must be called once per frame. */
export function createSession(operator: Operator, trial?: Trial): Session {
  const store = createStore()
  const { dispatch } = store
  const reportMistake = createMistakeReporter(post)
  const pageTools =
    trial?.pageTools ?? createPageToolClient((message) => post({ type: 'mcp', message }), reportMistake)
  const toolRunner = createToolRunner(pageTools)
  const identity = createVisitorIdentity(() => post({ type: 'identity' }))
  const chats = createChats({
    ...{ store, operator, identity, toolRunner },
    trial: trial?.transport,
    onFailure: reportFailure,
  })
  trial?.attach(store, chats.actions)
  const announceReady = createAnnouncer(post)
  const sharing = createSharing(post, () => findShareTarget(store.get().options))
  let channel: Channel | undefined

  function post(message: FrameMessage): void {
    if (store.get().options?.debug) logName('to the page', message.type)
    channel?.post(message)
  }

  function reportFailure(failure: Failure): void {
    post(renderFailure(failure))
    if (isLasting(failure)) dispatch({ type: 'blocked', failure })
  }

  function configure(given: FrameOptions, pageOrigin: string): void {
    if (needsOtherAddress(given, operator.publicKey)) {
      location.replace(`?key=${publicPartOf(given.apiKey)}`)
      return
    }
    const before = store.get().options
    const { options, problems } = checkOptions(given, operator.origin)
    for (const problem of problems) reportMistake(problem)
    const language = chooseLanguage([options.language, ...navigator.languages])
    chats.configure(options, language, pageOrigin)
    announceReady(renderLauncher(resolveTheme(options, operator.theme), language))
    if (before === undefined) pageTools.start()
  }

  function receive(message: PageMessage, from: Channel): void {
    channel = from
    if (store.get().options?.debug) logName('from the page', message.type)
    if (message.type === 'mcp') pageTools.receive(message.message)
    else if (message.type === 'context') chats.setContext(message.context)
    else if (message.type === 'logout' || message.type === 'resetVisitor') chats.forget(message.type)
    else if (message.type === 'newConversation') chats.startNewWhenKnown()
    else if (message.type === 'focus' || message.type === 'prefill') dispatch(message)
    else if (message.type === 'send') sendOrPrefill(message.text.trim(), chats, store)
    else if (message.type === 'identity') identity.receive(message.token)
    else if (message.type === 'share') sharing.settle(message.isReceived)
    else if (message.type === 'configure') configure(message.options, from.origin)
    else {
      dispatch({ isExpanded: undefined, ...message })
      chats.onVisibility()
    }
  }

  watchNetwork(store, chats.onOnline)
  postChanges(store, post)

  return {
    store,
    themeOf: (options) => resolveTheme(options, operator.theme),
    receive: inOrder(receive),
    ...chats.actions,
    decide: toolRunner.decide,
    insert: (text) => post({ type: 'insert', text, close: coversPage(store.get()) }),
    shareMessage: (text) => sharing.share('message', text),
    shareConversation: () => shareConversation(store, sharing),
    close: () => post({ type: 'close' }),
    toggleExpanded: () => post({ type: 'expand' }),
  }
}

/** Handles messages in order. While a message waits for its language to load, later messages wait too. */
function inOrder(receive: Session['receive']): Session['receive'] {
  let waiting: (() => void)[] | undefined
  return function receiveNext(message, from) {
    if (waiting !== undefined) {
      waiting.push(() => receiveNext(message, from))
      return
    }
    const loading =
      message.type === 'configure'
        ? loadLanguage([message.options.language, ...navigator.languages])
        : undefined
    if (loading === undefined) {
      receive(message, from)
      return
    }
    waiting = []
    void loading.then(() => {
      const later = waiting ?? []
      waiting = undefined
      receive(message, from)
      for (const next of later) next()
    })
  }
}

async function shareConversation(
  store: Store,
  sharing: ReturnType<typeof createSharing>,
): ReturnType<Session['shareConversation']> {
  const { conversation, language } = store.get()
  if (findStreaming(conversation) !== undefined) return undefined
  return sharing.share('conversation', renderTranscript(conversation.entries, language))
}

/** Puts the text into the input if it cannot be sent now. */
function sendOrPrefill(text: string, { actions }: Chats, { dispatch }: Store): void {
  if (text !== '' && !actions.send(text)) dispatch({ type: 'prefill', text })
}

/** Logs the detail for the page's developer, and returns the message for the page. */
function renderFailure({ code, detail, status, requestId }: Failure): FrameMessage {
  if (detail !== undefined) logMistake(detail)
  const message = detail ?? en.failures[code]
  return { type: 'error', code: toWidgetErrorCode(code), message, reason: code, status, requestId }
}

function watchNetwork({ dispatch }: Store, onOnline: () => void): void {
  function update(): void {
    dispatch({ type: 'online', isOnline: navigator.onLine })
  }
  function onChange(): void {
    update()
    if (navigator.onLine) onOnline()
  }
  window.addEventListener('online', onChange)
  window.addEventListener('offline', onChange)
  update()
}

function postChanges(store: Store, post: (message: FrameMessage) => void): void {
  postUnread(store, post)
  postMessages(store, post)
  postPersonal(store, post)
}

/** Posts the number of unread replies and messages from people whenever it changes. */
function postUnread(store: Store, post: (message: FrameMessage) => void): void {
  let posted = 0
  store.subscribe(() => {
    const { unread, language } = store.get()
    if (unread === posted) return
    posted = unread
    post({ type: 'unread', count: unread, label: unread === 0 ? '' : countIn(language, unread) })
  })
}

/** Posts an event, without the text, for each question that is sent and each answer that has ended. */
function postMessages(store: Store, post: (message: FrameMessage) => void): void {
  let streaming: string | undefined
  let asked: string | undefined
  store.subscribe(() => {
    const { entries } = store.get().conversation
    const last = entries.at(-1)
    const reply = entries.findLast(({ id }) => id === streaming)
    if (reply?.kind === 'reply' && reply.status !== 'streaming') {
      streaming = undefined
      post({ type: 'message', role: 'assistant', status: reply.status })
    }
    if (last?.kind !== 'reply' || last.status !== 'streaming' || last.id === streaming) return
    streaming = last.id
    const question = entries.findLast(({ kind }) => kind === 'user')?.id
    if (question !== asked) post({ type: 'message', role: 'user' })
    asked = question
  })
}

/** Posts who answers, and an event for each message to or from a person, without the text. */
function postPersonal(store: Store, post: (message: FrameMessage) => void): void {
  let mode = store.get().answering.mode
  let received = 0
  const sent = new Set<string>()
  store.subscribe(() => {
    const { answering, personMessages, conversation } = store.get()
    if (answering.mode !== mode) {
      mode = answering.mode
      post({ type: 'mode', mode })
    }
    for (; received < personMessages; received++) post({ type: 'message', role: 'person' })
    for (const entry of conversation.entries) {
      if (entry.kind !== 'user' || entry.delivery === undefined || sent.has(entry.id)) continue
      sent.add(entry.id)
      post({ type: 'message', role: 'user' })
    }
  })
}

/** Notifies the page when the frame is configured, and when the launcher's texts or colors change. */
function createAnnouncer(post: (message: FrameMessage) => void): (words: LauncherWords) => void {
  let posted = ''
  return (words) => {
    const text = JSON.stringify(words)
    if (text !== posted) afterRender(() => post({ type: 'ready', words }))
    posted = text
  }
}

function renderLauncher({ accent }: Theme, { strings }: Language): LauncherWords {
  const { openChat, closeChat, defaultTitle } = strings
  return { open: openChat, close: closeChat, window: defaultTitle, color: accent, iconColor: textOn(accent) }
}

/**
 * Returns whether the window covers the page, as on a small screen. Such a window closes after it has
 * inserted text, so that the visitor can see the text.
 */
function coversPage({ options }: AppState): boolean {
  return options?.isInline === false && screen.width < 640
}

/** Uses a timer, because a hidden frame is never painted. */
function afterRender(act: () => void): void {
  setTimeout(act, 0)
}

/** Returns a function that reports each mistake in the page's code only once. */
function createMistakeReporter(post: (message: FrameMessage) => void): (message: string) => void {
  const reported = new Set<string>()
  return (message) => {
    if (reported.has(message)) return
    reported.add(message)
    logMistake(message)
    post({ type: 'error', code: 'invalid_option', message })
  }
}

/** Logs a mistake by the page's developer; `message` must not contain values. */
function logMistake(message: string): void {
  // biome-ignore lint/suspicious/noConsole: the page's developer looks there
  console.error(`Parley: ${message}`)
}

/** Logs names only, never keys or text. */
function logName(direction: string, name: string): void {
  // biome-ignore lint/suspicious/noConsole: the `debug` option enables it
  console.debug(`parley: ${direction}: ${name}`)
}
