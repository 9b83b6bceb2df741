/** Defines the interface between the loader and the second script, which it loads when the page needs it. */
import type { ProactiveRule } from '../options.ts'
import type { WidgetEvents } from './events.ts'
import type { hostPageTools } from './tools/page-tools.ts'
import type { createToolServer } from './tools/tool-server.ts'

/** The options that need the second script. */
export interface ExtraOptions {
  readonly teaser?: string | undefined
  readonly teaserDelay?: number | undefined
  readonly rules?: readonly ProactiveRule[] | undefined
  readonly sound?: boolean | undefined
  readonly titleBadge?: boolean | undefined
  readonly debug?: boolean | undefined
}

/** The parts of the widget that the second script may use. */
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
