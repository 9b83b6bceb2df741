/** Defines the frame's state and its reducer. */
import type { FrameOptions } from '../options.ts'
import type { AgentSelf } from './chat/transport.ts'
import {
  type Answering,
  type Conversation,
  type ConversationAction,
  emptyConversation,
  modelAnswers,
  reduceConversation,
} from './conversation.ts'
import type { Failure } from './failure.ts'
import { chooseLanguage, type Language } from './strings/strings.ts'

export interface AppState {
  /** Undefined until the page has configured the frame. */
  readonly options: FrameOptions | undefined
  readonly language: Language
  /** Undefined until the server has responded, or if the endpoint has no agent. */
  readonly agent: AgentSelf | undefined
  /**
   * The place that stores the conversation. The agent determines it, so it is unknown until the server has
   * responded.
   */
  readonly home: 'unknown' | 'browser' | 'server'
  readonly conversation: Conversation
  /** Id of the shown conversation if the server stores it; undefined before its first message. */
  readonly conversationId: string | undefined
  readonly answering: Answering
  /** `loading` while a conversation is read from the server; the failure if it could not be read. */
  readonly opening: 'loading' | Failure | undefined
  /** The failure that prevents sending until the page changes its options. */
  readonly blocked: Failure | undefined
  /**
   * Why the visitor's last action, such as sending a message, had no effect; an unsent text is still in the
   * input.
   */
  readonly notice: Failure | undefined
  /** Whether the visitor can see the frame. */
  readonly isOpen: boolean
  /** Whether the window fills the side of the page; undefined if it cannot. */
  readonly isExpanded: boolean | undefined
  /** Text from the page for the input; a new object for each text. */
  readonly prefill: { readonly text: string } | undefined
  /** The stored text for the input; a new object whenever the input must show it. */
  readonly draft: { readonly text: string } | undefined
  readonly isOnline: boolean
  /** Questions that the visitor could ask after a reply. */
  readonly followUps: { readonly replyId: string; readonly questions: readonly string[] } | undefined
  /** Number of replies and messages of people that arrived while the frame was hidden. */
  readonly unread: number
  /** Number of messages of people that have arrived since the frame was loaded. */
  readonly personMessages: number
  /** Incremented whenever the input should receive the focus. */
  readonly focusCount: number
}

type AppAction =
  | ConversationAction
  | {
      readonly type: 'configured'
      readonly options: FrameOptions
      readonly language: Language
      readonly blocked: Failure | undefined
    }
  | { readonly type: 'agent'; readonly agent: AppState['agent'] }
  | { readonly type: 'home'; readonly home: AppState['home'] }
  | { readonly type: 'opening'; readonly opening: AppState['opening'] }
  | { readonly type: 'conversation-id'; readonly conversationId: string | undefined }
  | { readonly type: 'answering'; readonly answering: Answering }
  | { readonly type: 'reply-completed' }
  | { readonly type: 'person-messages'; readonly count: number }
  | { readonly type: 'blocked'; readonly failure: Failure }
  | { readonly type: 'noticed'; readonly failure: Failure }
  | { readonly type: 'visibility'; readonly isOpen: boolean; readonly isExpanded: boolean | undefined }
  | { readonly type: 'prefill'; readonly text: string }
  | { readonly type: 'draft'; readonly text: string }
  | { readonly type: 'online'; readonly isOnline: boolean }
  | { readonly type: 'follow-ups'; readonly followUps: AppState['followUps'] }
  | { readonly type: 'focus' }

const initialState: AppState = {
  options: undefined,
  language: chooseLanguage([]),
  agent: undefined,
  home: 'unknown',
  conversation: emptyConversation,
  conversationId: undefined,
  answering: modelAnswers,
  opening: undefined,
  blocked: undefined,
  notice: undefined,
  isOpen: false,
  isExpanded: undefined,
  prefill: undefined,
  draft: undefined,
  isOnline: true,
  followUps: undefined,
  unread: 0,
  personMessages: 0,
  focusCount: 0,
}

function reduceApp(state: AppState, action: AppAction): AppState {
  switch (action.type) {
    case 'configured': {
      const { options, language, blocked } = action
      return { ...state, options, language, blocked, notice: undefined }
    }
    case 'agent':
      return { ...state, agent: action.agent }
    case 'home':
      return { ...state, home: action.home }
    case 'opening':
      return { ...state, opening: action.opening }
    case 'conversation-id':
      return { ...state, conversationId: action.conversationId }
    case 'answering':
      return { ...state, answering: action.answering }
    case 'reply-completed':
      return { ...state, unread: state.isOpen ? 0 : state.unread + 1 }
    case 'person-messages': {
      const { count } = action
      const unread = state.isOpen ? 0 : state.unread + count
      return { ...state, unread, personMessages: state.personMessages + count }
    }
    case 'blocked':
      return { ...state, blocked: action.failure }
    case 'noticed':
      return { ...state, notice: action.failure }
    case 'visibility':
      return {
        ...state,
        isOpen: action.isOpen,
        isExpanded: action.isExpanded,
        unread: action.isOpen ? 0 : state.unread,
      }
    case 'prefill':
      return { ...state, prefill: { text: action.text } }
    case 'draft':
      return { ...state, draft: { text: action.text } }
    case 'follow-ups':
      return { ...state, followUps: action.followUps }
    case 'online':
      return { ...state, isOnline: action.isOnline }
    case 'focus':
      return { ...state, focusCount: state.focusCount + 1 }
    default:
      return reduceChat(state, action)
  }
}

function reduceChat(state: AppState, action: ConversationAction): AppState {
  const conversation = reduceConversation(state.conversation, action)
  if (conversation === state.conversation) return state
  const isEnd = action.type === 'ended' || action.type === 'failed'
  const changed = { ...state, conversation, notice: undefined }
  return isEnd ? reduceApp(changed, { type: 'reply-completed' }) : changed
}

export interface Store {
  readonly get: () => AppState
  readonly dispatch: (action: AppAction) => void
  /** Calls `listener` after each change; returns a function that unsubscribes. */
  readonly subscribe: (listener: () => void) => () => void
}

export function createStore(): Store {
  let state = initialState
  const listeners = new Set<() => void>()
  return {
    get: () => state,
    dispatch(action) {
      const next = reduceApp(state, action)
      if (next === state) return
      state = next
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
