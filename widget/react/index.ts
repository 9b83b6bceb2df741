/** Exports `parley/react`: the chat widget as a React component, and its hook. */
export type {
  ChatMessageEvent,
  Insertion,
  SendResult,
  Share,
  WidgetError,
  WidgetEvents,
} from '../host/events.ts'
export type { WidgetErrorCode } from '../messages.ts'
export type { PageTool, ProactiveRule, ToolAnnotations } from '../options.ts'
export { ParleyChat, type ParleyChatProps } from './ParleyChat.ts'
export { type ParleyChatHandle, useParleyChat } from './use-parley-chat.ts'
