/** Holds the state that all copies of this code on a page share: the widget and its listeners. */
import type { PageMessage } from '../messages.ts'
import type { GivenOptions } from './read-options.ts'

/** The messages that the page sends to the frame through the widget's API. */
export type SentType = Extract<
  PageMessage['type'],
  'send' | 'prefill' | 'newConversation' | 'logout' | 'resetVisitor'
>

interface SharedPage {
  widget: Widget | undefined
  readonly listeners: Set<() => void>
}

/** Returns the state that the page's script and React component share, and creates it on first use. */
export function shared<T>(name: string, make: () => T): T {
  const holder = window as unknown as Record<symbol, T | undefined>
  const key = Symbol.for(`parley.${name}`)
  holder[key] ??= make()
  return holder[key]
}

export function sharedPage(): SharedPage {
  return shared('page', () => ({ widget: undefined, listeners: new Set() }))
}

/** Notifies the listeners that the widget or its state has changed. */
export function publishChange(): void {
  for (const listener of sharedPage().listeners) listener()
}

/** The widget's public state; replaced with a new object after every change. */
export interface WidgetState {
  readonly isReady: boolean
  readonly isOpen: boolean
  readonly hasUnread: boolean
  /** Number of answers and messages from people that arrived while the window was closed. */
  readonly unreadCount: number
}

export interface Widget {
  readonly state: WidgetState
  readonly iframe: HTMLIFrameElement
  open(): void
  close(): void
  toggle(): void
  /** Sends the message to the frame when it is connected; a message with text also opens the window. */
  send(type: SentType, text?: string): void
  /**
   * Replaces the given options; undefined resets an option to its default. `containerId` cannot be changed.
   */
  configure(changes: GivenOptions): void
  /** Notifies the frame that the page's tools have changed. */
  publishTools(): void
  /** Removes the widget from the page; another one can be mounted afterwards. */
  destroy(): void
}
