/** Defines the frame's state and its reducer. */
import type { FrameOptions } from '../options.ts'
import type { AgentSelf } from './chat/transport.ts'
import {
  type Conversation,
  type ConversationAction,
  emptyConversation,
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
  readonly conversation: Conversation
  /** The failure that prevents sending until the page changes its options. */
  readonly blocked: Failure | undefined
  /** Why the newest message was not sent; its text is still in the input. */
  readonly notice: Failure | undefined
  /** Whether the visitor can see the frame. */
  readonly isOpen: boolean
  readonly isOnline: boolean
  /** Number of replies that were completed while the frame was hidden. */
  readonly unread: number
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
  | { readonly type: 'blocked'; readonly failure: Failure }
  | { readonly type: 'noticed'; readonly failure: Failure }
  | { readonly type: 'visibility'; readonly isOpen: boolean }
  | { readonly type: 'online'; readonly isOnline: boolean }
  | { readonly type: 'focus' }

const initialState: AppState = {
  options: undefined,
  language: chooseLanguage([]),
  agent: undefined,
  conversation: emptyConversation,
  blocked: undefined,
  notice: undefined,
  isOpen: false,
  isOnline: true,
  unread: 0,
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
    case 'blocked':
      return { ...state, blocked: action.failure }
    case 'noticed':
      return { ...state, notice: action.failure }
    case 'visibility':
      return { ...state, isOpen: action.isOpen, unread: action.isOpen ? 0 : state.unread }
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
  return {
    ...state,
    conversation,
    notice: undefined,
    unread: isEnd && !state.isOpen ? state.unread + 1 : state.unread,
  }
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
