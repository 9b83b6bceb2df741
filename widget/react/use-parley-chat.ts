/** Provides the hook that reads and controls the page's widget. */
import { useSyncExternalStore } from 'react'
import { listen, type WidgetEvents } from '../host/events.ts'
import { sharedPage, type WidgetState } from '../host/page.ts'

export interface ParleyChatHandle extends WidgetState {
  open(): void
  close(): void
  toggle(): void
  /** Shows an empty conversation. */
  newConversation(): void
  /** Opens the window and sends a message on the visitor's behalf. */
  sendMessage(text: string): void
  /** Opens the window and puts text into the input. */
  prefill(text: string): void
  /** Replaces the context until the `context` prop changes to another object. */
  setContext(context: Record<string, unknown>): void
  /** Calls the listener for each event; returns a function that removes it. */
  on<Name extends keyof WidgetEvents>(name: Name, listener: (detail: WidgetEvents[Name]) => void): () => void
  /** Shows the conversation of another signed-in user until the `user` prop changes. */
  setUser(user?: string): void
  /** Shows the conversations of the user whom the JWT identifies until the `visitorToken` prop changes. */
  setVisitor(token?: string): void
  /** Deletes the conversations with this agent that this browser has stored. */
  logout(): void
  /** Removes the identified user's conversation and token, and calls `getVisitorToken` again. */
  resetVisitor(): void
  readonly iframe: HTMLIFrameElement | null
}

/** The state without a widget, and during server rendering. */
const nothing: WidgetState = { isReady: false, isOpen: false, hasUnread: false, unreadCount: 0 }

const actions = {
  open: () => sharedPage().widget?.open(),
  close: () => sharedPage().widget?.close(),
  toggle: () => sharedPage().widget?.toggle(),
  newConversation: () => sharedPage().widget?.send('newConversation'),
  logout: () => sharedPage().widget?.send('logout'),
  resetVisitor: () => sharedPage().widget?.send('resetVisitor'),
  sendMessage: (text: string) => sharedPage().widget?.send('send', text),
  prefill: (text: string) => sharedPage().widget?.send('prefill', text),
  on: listen,
  setUser: (user?: string) => sharedPage().widget?.configure({ user }),
  setVisitor: (visitorToken?: string) => sharedPage().widget?.configure({ visitorToken }),
  setContext: (context: Record<string, unknown>) => sharedPage().widget?.configure({ context }),
}

/** Returns the widget's state and actions; works in every component on the page. */
export function useParleyChat(): ParleyChatHandle {
  const state = useSyncExternalStore(subscribe, readState, () => nothing)
  const iframe = typeof window === 'undefined' ? null : (sharedPage().widget?.iframe ?? null)
  return { ...state, ...actions, iframe }
}

function readState(): WidgetState {
  return sharedPage().widget?.state ?? nothing
}

function subscribe(listener: () => void): () => void {
  const { listeners } = sharedPage()
  listeners.add(listener)
  return () => listeners.delete(listener)
}
