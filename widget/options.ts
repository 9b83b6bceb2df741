/** The widget's options: names, defaults, and which of them the frame receives. */

/** A tool of the page, as the chat API describes functions. */
export interface PageTool {
  readonly type: 'function'
  readonly function: {
    readonly name: string
    readonly description?: string
    /** JSON Schema of an object. */
    readonly parameters?: Readonly<Record<string, unknown>>
    /** How careful the frame is before it calls the tool, as MCP names it, and `requiresApproval`. */
    readonly annotations?: ToolAnnotations
  }
}

/** See MCP 2025-11-25, ToolAnnotations; `requiresApproval` is ours: the person is asked whatever else is said. */
export interface ToolAnnotations {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly requiresApproval?: boolean
}

/** What the frame needs to know. It travels over the port, never in an address. */
export interface FrameOptions {
  /** An agent key; it is public, but stays in memory. */
  readonly apiKey?: string
  /** Checked against the key's agent. */
  readonly agentId?: string
  /** A chat completions address of another server. */
  readonly endpoint?: string
  readonly model?: string
  readonly system?: string
  /** Heads an empty chat. */
  readonly welcomeMessage?: string
  readonly title?: string
  readonly theme: 'light' | 'dark' | 'auto'
  /** `#rgb`, `#rrggbb`, or any color CSS knows by one word. */
  readonly primaryColor: string
  /** Shown as the first message of the assistant, never sent to the model. */
  readonly greeting?: string
  /** The frame's own words in its language unless given. */
  readonly placeholder?: string
  readonly debug: boolean
  /** With `endpoint` only. */
  readonly headers?: Readonly<Record<string, string>>
  /** With `endpoint` only, and where the operator allows it. */
  readonly providerApiKey?: string
  /** BCP 47; the browser's unless given. */
  readonly language?: string
  /** Whether the conversation survives a reload, in the frame's own storage. */
  readonly history: boolean
  /** The page's id of the signed-in person, at most 256 characters; each has a stored conversation of their own. */
  readonly user?: string
  /** Whether the frame has a close button: not when it stands in a container of the page. */
  readonly isInline: boolean
}

/** Everything a page can set.  */
export interface WidgetOptions extends Omit<FrameOptions, 'isInline'> {
  readonly position: 'bottom-right' | 'bottom-left'
  /** A number is pixels. */
  readonly width: string | number
  readonly height: string | number
  readonly autoOpen: boolean
  /** Goes with each turn; another object replaces it, the same one changed does not. */
  readonly context: Readonly<Record<string, unknown>>
  readonly tools: readonly PageTool[]
  /** The server's origin, where it is not that of `endpoint`, of the script, or of the page. */
  readonly widgetUrl?: string
  /** The floating button. */
  readonly defaultUI: boolean
  /** The id of an element of the page to live in, instead of a window above the page. */
  readonly containerId?: string
  /** Whether the script mounts the widget by itself. */
  readonly autoMount: boolean
}

export const defaultOptions = {
  theme: 'auto',
  position: 'bottom-right',
  primaryColor: '#4f46e5',
  width: 360,
  height: 420,
  autoOpen: false,
  context: {},
  tools: [],
  debug: false,
  defaultUI: true,
  history: true,
  autoMount: true,
} as const satisfies Partial<WidgetOptions>
