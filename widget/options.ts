/** Defines the widget's options, their defaults, and which of them the frame receives. */

import type { Appearance } from './appearance.ts'

/** A page tool in the chat API's format. */
export interface PageTool {
  readonly type: 'function'
  readonly function: {
    readonly name: string
    readonly description?: string
    /** JSON Schema whose type is `object`. */
    readonly parameters?: Readonly<Record<string, unknown>>
    /** MCP annotations and `requiresApproval`, which determine whether the visitor must approve a call. */
    readonly annotations?: ToolAnnotations
  }
}

/** MCP 2025-11-25 annotations, and `requiresApproval`, which always requires the visitor's approval. */
export interface ToolAnnotations {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly requiresApproval?: boolean
}

/** Opens the chat or shows a teaser once, when the first of its conditions is met. */
export interface ProactiveRule {
  /** Seconds after the widget has started. */
  readonly after?: number
  /** Scroll position, as a percentage of the distance that the page can scroll. */
  readonly scroll?: number
  /** Applies the rule when the pointer leaves through the top of the page. */
  readonly exitIntent?: boolean
  /** Paths on which the rule applies; `/rooms/*` also matches everything below. Default: every page. */
  readonly pages?: readonly string[]
  /** Opens the chat. */
  readonly open?: boolean
  /** Shows this text above the launcher. */
  readonly teaser?: string
}

/** The options that the frame receives, through the port and never in an address. */
export interface FrameOptions extends Appearance {
  /** An agent key; public, but stored only in memory. */
  readonly apiKey?: string
  /** Must be the id of the agent that the key belongs to. */
  readonly agentId?: string
  /** URL of a chat completions API on another server. */
  readonly endpoint?: string
  readonly model?: string
  readonly system?: string
  /** Shown at the top of an empty chat. */
  readonly welcomeMessage?: string
  readonly title?: string
  /** Default: the color scheme of the agent's theme. */
  readonly theme?: 'light' | 'dark' | 'auto'
  /** Shown as the assistant's first message, but not sent to the model. */
  readonly greeting?: string
  /** Default: the frame's text in the visitor's language. */
  readonly placeholder?: string
  readonly debug: boolean
  /** Used only with `endpoint`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Used only with `endpoint`, if the operator allows it. */
  readonly providerApiKey?: string
  /** BCP 47 tag; default: the browser's language. */
  readonly language?: string
  /** Whether the frame stores the conversation, so that it survives a reload. */
  readonly history: boolean
  /**
   * The page's id for the signed-in user, at most 256 characters; each user has a separate stored
   * conversation.
   */
  readonly user?: string
  /** A JWT in which the page's server states who the user is (docs/visitors.md). */
  readonly visitorToken?: string
  /** Whether the widget is inline, inside a container of the page. An inline widget has no close button. */
  readonly isInline: boolean
  /**
   * The names of the options and callbacks that the page has set. Older versions of the React component do
   * not send them.
   */
  readonly given?: readonly string[]
}

/** All options that a page can set. */
export interface WidgetOptions extends Omit<FrameOptions, 'isInline' | 'given'> {
  readonly autoOpen: boolean
  /** Sent with each turn. Pass a new object to change it. */
  readonly context: Readonly<Record<string, unknown>>
  readonly tools: readonly PageTool[]
  /** The server's origin. Default: the origin of `endpoint`, the script or the page. */
  readonly widgetUrl?: string
  /** Whether the floating button is shown. */
  readonly defaultUI: boolean
  /** Id of an element that contains the widget, instead of a window above the page. */
  readonly containerId?: string
  /**
   * When the frame loads: when the visitor opens the chat or points at the launcher (`open`), or when the
   * page is idle (`idle`).
   */
  readonly load: 'open' | 'idle'
  /** Whether the window is open again on the next page of the same tab. */
  readonly rememberOpen: boolean
  readonly rules: readonly ProactiveRule[]
  /** Whether a short tone announces unread messages. */
  readonly sound: boolean
  /** Whether the page's title shows the number of unread messages. */
  readonly titleBadge: boolean
  /** Whether the script mounts the widget automatically. */
  readonly autoMount: boolean
}

export const defaultOptions = {
  autoOpen: false,
  context: {},
  tools: [],
  debug: false,
  defaultUI: true,
  history: true,
  load: 'open',
  rememberOpen: true,
  rules: [],
  sound: false,
  titleBadge: false,
  autoMount: true,
} as const satisfies Partial<WidgetOptions>

/** Returns whether the page has this callback; true if that is unknown. */
export function hasCallback(
  { given }: FrameOptions,
  name: 'onInsert' | 'onUserShare' | 'getVisitorToken',
): boolean {
  return given?.includes(name) ?? true
}
