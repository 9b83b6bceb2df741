/**
 * Defines the messages between the page and the frame.
 *
 * 1. When the frame has loaded, the page posts `PageHello` to the frame's origin.
 * 2. The frame accepts the first hello of its parent, remembers that origin, and posts `FrameHello` to it
 *    only.
 * 3. The page posts `PortOffer` with one end of a `MessageChannel`. From then on, both sides use only the
 *    port.
 *
 * Both sides check the source, origin and session of every message on the window, and the form of all
 * messages. They silently ignore invalid messages. The page creates a new session each time the frame loads.
 */
import type { FrameOptions } from './options.ts'

/** Protocol version; the frame ignores messages with any other version. */
export const PROTOCOL = 'parley/1'

/** Maximum message length, in UTF-16 code units of its JSON. */
export const MAX_MESSAGE_LENGTH = 256 * 1024

/** Error code of a tool call that did not reach the page. */
export const NO_TOOL_HANDLER = 'No onToolCall'

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

/** A JSON-RPC message of the Model Context Protocol; the frame is the client, the page is the server. */
export interface ToolMessage {
  readonly type: 'mcp'
  readonly message: Readonly<Record<string, unknown>>
}

/** Messages from the page to the frame over the port. */
export type PageMessage =
  /** Sent first, and whenever an option has changed. */
  | { readonly type: 'configure'; readonly options: FrameOptions }
  | { readonly type: 'context'; readonly context: Readonly<Record<string, unknown>> }
  /** Whether the frame is visible; replies that arrive while it is hidden are unread. */
  | {
      readonly type: 'visibility'
      readonly isOpen: boolean
      /** Whether the window fills the side of the page; undefined if it cannot. */
      readonly isExpanded?: boolean | undefined
    }
  /** The visitor has opened the window; the frame focuses the input. */
  | { readonly type: 'focus' }
  /** The user has signed out of the page. The frame deletes the stored conversations with this agent. */
  | { readonly type: 'logout' }
  /** Another user may have signed in to the page. The frame removes the identified user's conversation and token. */
  | { readonly type: 'resetVisitor' }
  /** Sends a message on the visitor's behalf, or puts it into the input while an answer is being written. */
  | { readonly type: 'send'; readonly text: string }
  /** Puts text into the input. */
  | { readonly type: 'prefill'; readonly text: string }
  /** Shows an empty conversation. */
  | { readonly type: 'newConversation' }
  /** The response to `identity`; without a token if the page could not provide one. */
  | { readonly type: 'identity'; readonly token?: string | undefined }
  /** The response to `share`: whether the page has received the text. */
  | { readonly type: 'share'; readonly isReceived: boolean }
  | ToolMessage

/**
 * The launcher's texts and colors. The frame computes them, because the loader contains neither the
 * translations nor the contrast code.
 */
export interface LauncherWords {
  /** The button's name while the window is closed. */
  readonly open: string
  /** The button's name while the window is open. */
  readonly close: string
  /** The window's accessible name. */
  readonly window: string
  /** The button's background color (`#rrggbb`); `iconColor` contrasts with it. */
  readonly color: string
  readonly iconColor: string
}

/** Messages from the frame to the page over the port. The frame sends no other conversation text. */
export type FrameMessage =
  /** The frame is configured. Sent again when the launcher's texts or colors change. */
  | { readonly type: 'ready'; readonly words: LauncherWords }
  | { readonly type: 'close' }
  /** The visitor switches between the window and the side panel. */
  | { readonly type: 'expand' }
  /** A question was sent, an answer has ended, or a person has answered; without its text. */
  | { readonly type: 'message'; readonly role: 'user' | 'assistant' | 'person'; readonly status?: string }
  /**
   * The conversation's mode has changed. In `waiting`, the conversation is waiting for a person and the model
   * does not answer.
   */
  | { readonly type: 'mode'; readonly mode: 'model' | 'waiting' | 'person' }
  /** `label` is the count as text, such as "2 new messages". */
  | { readonly type: 'unread'; readonly count: number; readonly label: string }
  /** The frame needs another JWT from `getVisitorToken`. */
  | { readonly type: 'identity' }
  /** The visitor clicked "Insert into page" below a reply. */
  | { readonly type: 'insert'; readonly text: string; readonly close: boolean }
  /** The visitor clicked "Share" or "Share conversation". */
  | { readonly type: 'share'; readonly kind: 'message' | 'conversation'; readonly text: string }
  | {
      readonly type: 'error'
      readonly code: WidgetErrorCode
      readonly message: string
      readonly reason?: string | undefined
      readonly status?: number | undefined
      readonly requestId?: string | undefined
    }
  | ToolMessage

/** Error codes for `onError`; docs/widget.md explains each. */
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
  'identity_invalid',
  'identity_expired',
  'invalid_option',
] as const

export type WidgetErrorCode = (typeof widgetErrorCodes)[number]
