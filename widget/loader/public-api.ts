/** What pages call. */
import type { GivenOptions } from '../host/read-options.ts'

export interface ParleyChat {
  /** Over `ParleyChatConfig` and the attributes of the script's tag. */
  mount(options?: GivenOptions): void
  /** Changes what is passed, at run time; also before `mount`. */
  configure(options: GivenOptions): void
  open(): void
  close(): void
  toggle(): void
  /** Another object replaces the context; the same one changed does not. */
  setContext(context: Readonly<Record<string, unknown>>): void
  /** Takes the widget off the page; `mount` puts another one there. */
  destroy(): void
  /** Resolves once the widget is there; after `destroy` it is that of the next one. */
  readonly ready: Promise<ParleyChat>
  readonly isOpen: boolean
  readonly hasUnread: boolean
  readonly iframe: HTMLIFrameElement | null
}
