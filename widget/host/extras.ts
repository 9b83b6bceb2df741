/** Defines the interface between the loader and the second script, which it loads when the page needs it. */
import type { WidgetEvents } from './events.ts'
import type { hostPageTools } from './tools/page-tools.ts'
import type { createToolServer } from './tools/tool-server.ts'

/** Opens the chat or shows a teaser once, when its condition is met. */
export interface ProactiveRule {
  /** Seconds after the widget has started. */
  readonly after?: number
  /** How far the visitor has scrolled, in percent of the page. */
  readonly scroll?: number
  /** When the pointer leaves through the top of the page. */
  readonly exitIntent?: boolean
  /** Paths on which the rule applies; `/rooms/*` also matches everything below. Default: every page. */
  readonly pages?: readonly string[]
  /** Opens the chat. */
  readonly open?: boolean
  /** Shows this text above the launcher. */
  readonly teaser?: string
}

/** The options that need the second script. */
export interface ExtraOptions {
  readonly teaser?: string | undefined
  readonly teaserDelay?: number | undefined
  readonly rules?: readonly ProactiveRule[] | undefined
  readonly sound?: boolean | undefined
  readonly titleBadge?: boolean | undefined
  readonly debug?: boolean | undefined
}

/** What the second script may use of the widget. */
export interface ExtrasPage {
  /** The element in the widget's shadow root that contains the launcher. */
  readonly layout: HTMLElement
  /** The name of the button that dismisses the teaser. */
  readonly closeWord: string
  readonly isLocal: boolean
  readonly isOpen: () => boolean
  readonly open: () => void
  readonly on: (name: keyof WidgetEvents, listener: (detail: unknown) => void) => () => void
  readonly ended: AbortSignal
}

export interface Extras {
  readonly createToolServer: typeof createToolServer
  readonly hostPageTools: typeof hostPageTools
  readonly startExtras: (page: ExtrasPage, options: ExtraOptions) => void
}
