/** What the page hears from the widget: its callbacks, and the same as events of the document. Contract: Events; Decision: 1. */
import type { WidgetErrorCode } from '../messages.ts'

/** What `onError` is called with. Contract: Events, onError. */
export interface WidgetError extends Error {
  /** The table in docs/widget.md says what each means. */
  readonly code: WidgetErrorCode
}

/** What the person wants in the page. */
export interface Insertion {
  readonly text: string
  /** Whether the window closes with it. */
  readonly close: boolean
}

/** What the person gave to the page. */
export interface Share {
  readonly kind: 'message' | 'conversation'
  readonly text: string
}

/** Answers the assistant, once; a string goes as it is, everything else as JSON. */
export type SendResult = (result?: unknown) => void

/** Contract: Events (Widget callbacks). */
export interface WidgetCallbacks {
  readonly onReady?: (() => void) | undefined
  readonly onOpen?: (() => void) | undefined
  readonly onClose?: (() => void) | undefined
  readonly onInsert?: ((insertion: Insertion) => void) | undefined
  /** What it throws, or rejects with, is the assistant's answer too: as an error. */
  readonly onToolCall?:
    | ((tool: string, args: Record<string, unknown>, sendResult: SendResult) => unknown)
    | undefined
  readonly onUserShare?: ((data: Share) => void) | undefined
  readonly onError?: ((error: WidgetError) => void) | undefined
}

/** An event by its name on the document, without `parley-chat-`. */
export interface WidgetEvents {
  ready: undefined
  opened: undefined
  closed: undefined
  unread: { readonly count: number }
  insert: Insertion
  'tool-call': {
    readonly tool: string
    readonly args: Record<string, unknown>
    readonly sendResult: SendResult
  }
  'user-share': Share
  error: WidgetError
}

/** Tells the document. */
export function dispatch<Name extends keyof WidgetEvents>(name: Name, detail: WidgetEvents[Name]): void {
  document.dispatchEvent(new CustomEvent(`parley-chat-${name}`, { detail }))
}

/** Calls a callback of the page; what it throws is the page's own error, and shown as such. */
export function callPage(callback: () => unknown): void {
  try {
    callback()
  } catch (error) {
    reportError(error)
  }
}

/** Tells the page. */
export function tellFailure({ onError }: WidgetCallbacks, code: WidgetErrorCode, text: string): void {
  const error = Object.assign(new Error(text), { code })
  dispatch('error', error)
  if (typeof onError === 'function') callPage(() => onError(error))
}

/** Tells the page, and its developer in the console: `text` is never a key, a context, or somebody's words. */
export function tellMistake(callbacks: WidgetCallbacks, code: WidgetErrorCode, text = ''): void {
  say('warn', `${code} ${text}`)
  tellFailure(callbacks, code, text || code)
}

/** A warning for a mistake, `info` for what `debug` asks for. */
export function say(level: 'warn' | 'info', text: string): void {
  // biome-ignore lint/suspicious/noConsole: it is where developers of the page look.
  console[level](`Parley: ${text}`)
}
