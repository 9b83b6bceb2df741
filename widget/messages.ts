/**
 * The messages between the page and the frame.
 *
 * 1. The frame has loaded: the page posts `PageHello` to the frame's origin.
 * 2. The frame takes the first hello of its parent, remembers that origin for good, and answers `FrameHello` to it alone.
 * 3. The page posts `PortOffer` with one end of a `MessageChannel`. From then on both speak over the port only.
 *
 * Both sides check the source, the origin and the session of every message on the window, and the form of every message at all;
 * what does not fit is dropped in silence. The session is made anew by the page for each load of the frame.
 */
import type { FrameOptions } from './options.ts'

/** A page and a frame of different versions do not understand each other: the frame answers nothing else. */
export const PROTOCOL = 'parley/1'

/** Longest message, in UTF-16 code units of its JSON. */
export const MAX_MESSAGE_LENGTH = 256 * 1024

export interface PageHello {
  readonly protocol: typeof PROTOCOL
  readonly type: 'page-hello'
  readonly session: string
}

export interface FrameHello {
  readonly protocol: typeof PROTOCOL
  readonly type: 'frame-hello'
  readonly session: string
}

export interface PortOffer {
  readonly protocol: typeof PROTOCOL
  readonly type: 'port'
  readonly session: string
}

/** JSON-RPC of the Model Context Protocol: the frame is the client, the page the server. */
export interface ToolMessage {
  readonly type: 'mcp'
  readonly message: Readonly<Record<string, unknown>>
}

/** What the page says over the port. */
export type PageMessage =
  /** First of all, and whenever an option has changed. */
  | { readonly type: 'configure'; readonly options: FrameOptions }
  | { readonly type: 'context'; readonly context: Readonly<Record<string, unknown>> }
  /** Whether a person can see the frame: what comes while they cannot is unread. */
  | { readonly type: 'visibility'; readonly isOpen: boolean }
  /** The window was opened by the keyboard or the button: the input takes the focus. */
  | { readonly type: 'focus' }
  /** The person has signed out of the page: the stored conversations with this agent are deleted. */
  | { readonly type: 'logout' }
  | ToolMessage

/** What the page shows of the widget besides the frame: only the frame knows all languages and computes contrasts. */
export interface LauncherWords {
  /** The button's name while the window is closed. */
  readonly open: string
  /** And while it is open. */
  readonly close: string
  /** The name of the window, for people who do not see it. */
  readonly window: string
  /** The button's background, `#rrggbb`, and the color of its icon, which stands out on it. */
  readonly color: string
  readonly iconColor: string
}

/** What the frame says over the port. No other text of the conversation ever leaves it. */
export type FrameMessage =
  /** The frame is configured. Sent again when the language changes. */
  | { readonly type: 'ready'; readonly words: LauncherWords }
  | { readonly type: 'close' }
  /** `label` says the count in words, such as "2 new messages". */
  | { readonly type: 'unread'; readonly count: number; readonly label: string }
  /** The person pressed "insert" under a reply. */
  | { readonly type: 'insert'; readonly text: string; readonly close: boolean }
  /** The person pressed "share". */
  | { readonly type: 'share'; readonly kind: 'message' | 'conversation'; readonly text: string }
  | { readonly type: 'error'; readonly code: WidgetErrorCode; readonly message: string }
  | ToolMessage

/** What `onError` can be told; the table in docs/widget.md says what each means. */
export const widgetErrorCodes = [
  'missing_api_key',
  'invalid_api_key',
  'agent_mismatch',
  'endpoint_not_allowed',
  'provider_key_not_allowed',
  'context_too_large',
  'rate_limited',
  'offline',
  'chat_failed',
  'frame_unreachable',
  'container_not_found',
  'already_mounted',
  'invalid_option',
] as const

export type WidgetErrorCode = (typeof widgetErrorCodes)[number]
