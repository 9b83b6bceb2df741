/**
 * Defines the interface between the loader and the second script. Its names stay stable, because a page that
 * was loaded before an update of the server can load the second script of the new version.
 */
import type { WidgetErrorCode } from '../messages.ts'
import type { WidgetEvents } from './events.ts'
import type { SentType, WidgetState } from './page.ts'
import type { ReadOptions } from './read-options.ts'
import type { WebMcpTools } from './webmcp.ts'

/** Properties of the launcher that the second script learns from the frame. */
export interface LauncherChanges {
  readonly color?: string
  readonly iconColor?: string
  /** Text after the name, such as " (2 new messages)". */
  readonly unread?: string
}

/** The parts of the widget that the second script reads and controls. */
export interface HostWidget {
  /** The element in the widget's shadow root that contains the launcher and the window. */
  readonly layout: HTMLElement
  readonly frame: HTMLIFrameElement
  /** The frame's address for the current options. */
  readonly address: string
  readonly isInline: boolean
  readonly webMcpTools: WebMcpTools
  readonly ended: AbortController
  /** The page's current options with their defaults, but without the agent's theme. */
  readonly options: ReadOptions
  readonly state: WidgetState
  readonly isExpanded: boolean
  /** Whether the frame's document has loaded. */
  isLoaded: boolean
  readonly open: () => void
  readonly close: () => void
  readonly expand: (isExpanded: boolean) => void
  readonly change: (changes: Partial<WidgetState>) => void
  readonly changeLauncher: (changes: LauncherChanges) => void
  readonly notify: <Name extends keyof WidgetEvents>(name: Name, detail?: WidgetEvents[Name]) => boolean
  readonly report: (code: WidgetErrorCode, text: string) => void
  readonly on: (name: keyof WidgetEvents, listener: (detail: unknown) => void) => () => void
  /** Starts the frame's timeout again, or ends it. */
  readonly waitForFrame: (isWaiting: boolean) => void
}

/** The connection to the frame, which the loader uses after the frame has been requested. */
export interface FrameLink {
  /** Sends the message when the frame is connected. */
  readonly send: (type: SentType, text: string | undefined) => void
  /**
   * Sends the options and the window's state if they have changed. `takesFocus`: focuses the frame's input.
   */
  readonly update: (takesFocus?: boolean) => void
  /** Notifies the frame that the page's tools have changed. */
  readonly publishTools: () => void
  /** Must be called when the frame loads another document. */
  readonly disconnect: () => void
}

export interface Extras {
  readonly linkFrame: (widget: HostWidget) => FrameLink
  /** Starts the parts that the options select; everything ends when `widget.ended` aborts. */
  readonly startExtras: (widget: HostWidget) => void
  /** Reports headers and tools that the widget cannot use. */
  readonly checkOptions: (widget: HostWidget) => void
  /** Shows a hint to the page's developer instead of the window. */
  readonly showHint: (layout: HTMLElement, text: string) => void
}
