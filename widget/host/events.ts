/** Reports to the page through callbacks, document events and console warnings. */

import type { WidgetErrorCode } from '../messages.ts'
import { dom } from './dom.ts'

/** The argument of `onError`. */
export interface WidgetError extends Error {
  /** A code from docs/widget.md. */
  readonly code: WidgetErrorCode
  /** A more specific reason than `code`, such as `quota_spent`. */
  readonly reason?: string | undefined
  /** HTTP status of the server's response. */
  readonly status?: number | undefined
  /** The request's id in the server's log. */
  readonly requestId?: string | undefined
}

/** A message in the conversation; the page never receives its text. */
export interface ChatMessageEvent {
  readonly role: 'user' | 'assistant' | 'person'
  /** The answer's final status, such as `done` or `stopped`. */
  readonly status?: string | undefined
}

/** Text that the visitor inserts into the page. */
export interface Insertion {
  readonly text: string
  /** Whether the window closes after the insertion. */
  readonly close: boolean
}

/** Text that the visitor shared with the page. */
export interface Share {
  readonly kind: 'message' | 'conversation'
  readonly text: string
}

/**
 * Sends a tool call's result; later calls have no effect. Strings are sent unchanged, other values as JSON.
 */
export type SendResult = (result?: unknown) => void

export interface WidgetCallbacks {
  readonly onReady?: (() => void) | undefined
  readonly onOpen?: (() => void) | undefined
  readonly onClose?: (() => void) | undefined
  readonly onMessage?: ((message: ChatMessageEvent) => void) | undefined
  readonly onUnread?: ((unread: { readonly count: number }) => void) | undefined
  readonly onInsert?: ((insertion: Insertion) => void) | undefined
  /** If it throws or rejects, the model receives the error as the tool's result. */
  readonly onToolCall?:
    | ((tool: string, args: Record<string, unknown>, sendResult: SendResult) => unknown)
    | undefined
  readonly onUserShare?: ((data: Share) => void) | undefined
  readonly onError?: ((error: WidgetError) => void) | undefined
  /** Returns a JWT in which the page's server states who the user is. Called when the frame needs one. */
  readonly getVisitorToken?: (() => Promise<string>) | undefined
}

/** Event details by name; document events have the prefix `parley-chat-`. */
export interface WidgetEvents {
  ready: undefined
  opened: undefined
  closed: undefined
  unread: { readonly count: number }
  message: ChatMessageEvent
  insert: Insertion
  /** `waiting`: the visitor waits for a person. */
  mode: { readonly mode: 'model' | 'waiting' | 'person' }
  'tool-call': {
    readonly tool: string
    readonly args: Record<string, unknown>
    readonly sendResult: SendResult
  }
  'user-share': Share
  error: WidgetError
}

const callbackNames: Partial<Record<keyof WidgetEvents, keyof WidgetCallbacks>> = {
  ready: 'onReady',
  opened: 'onOpen',
  closed: 'onClose',
  message: 'onMessage',
  unread: 'onUnread',
  insert: 'onInsert',
  'user-share': 'onUserShare',
  error: 'onError',
}

/**
 * Dispatches the document event and calls its callback, except `onToolCall`, which the caller must call
 * itself to get its result. Returns whether a listener or callback has read the detail, because the document
 * does not reveal its listeners.
 */
export function publish<Name extends keyof WidgetEvents>(
  options: WidgetCallbacks & { readonly debug?: unknown },
  name: Name,
  detail: WidgetEvents[Name] | undefined,
): boolean {
  if (options.debug) log('info', name)
  let isRead = false
  const get = () => {
    isRead = true
    return detail
  }
  dom.dispatchEvent(Object.defineProperty(new CustomEvent(`parley-chat-${name}`), 'detail', { get }))
  const callback = options[callbackNames[name] as 'onReady'] as ((detail: unknown) => void) | undefined
  // Options that failed validation may not be functions.
  try {
    if (typeof callback === 'function') callback(get())
  } catch (error) {
    reportError(error)
  }
  return isRead
}

/** Calls the listener for each event with this name; returns a function that removes it. */
export function listen<Name extends keyof WidgetEvents>(
  name: Name,
  listener: (detail: WidgetEvents[Name]) => void,
): () => void {
  const onEvent = (event: Event) => listener((event as CustomEvent<WidgetEvents[Name]>).detail)
  const type = `parley-chat-${name}`
  dom.addEventListener(type, onEvent)
  return () => dom.removeEventListener(type, onEvent)
}

/** Reports a mistake in the page's code. `text` must not contain keys, contexts or chat text. */
export function reportMistake(callbacks: WidgetCallbacks, code: WidgetErrorCode, text = ''): void {
  log('warn', `${code} ${text}`)
  publish(callbacks, 'error', Object.assign(new Error(text || code), { code }))
}

/** Logs to the console. `text` must not contain keys, contexts or chat text. */
export function log(level: 'warn' | 'info', text: string): void {
  // biome-ignore lint/suspicious/noConsole: the messages are for the page's developer
  console[level](`Parley: ${text}`)
}
