/** Exports `parley/widget`: the types of `ParleyChat` and `ParleyChatConfig` for pages with the script tag. */
import type { GivenOptions } from '../host/read-options.ts'
import type { ParleyChat } from './api.ts'

export type {
  ChatMessageEvent,
  Insertion,
  SendResult,
  Share,
  WidgetError,
  WidgetEvents,
} from '../host/events.ts'
export type { GivenOptions as ParleyChatConfig } from '../host/read-options.ts'
export type { WidgetErrorCode } from '../messages.ts'
export type { PageTool, ProactiveRule, ToolAnnotations } from '../options.ts'
export type { ParleyChat } from './api.ts'

/** A call made before the script loaded: a method's name and its arguments. */
export type QueuedCall = readonly [name: string, ...given: never[]]

declare global {
  interface Window {
    ParleyChatConfig?: GivenOptions
    ParleyChat?: Partial<ParleyChat> & { q?: { push(call: QueuedCall): unknown } }
  }
}
