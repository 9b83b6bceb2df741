/** What the component takes: the table of the contract, with what each prop does. */
import type { Insertion, SendResult, Share, WidgetError } from '../host/events.ts'
import type { PageTool } from '../options.ts'

/** Contract: Chat widget component. What it announces as coming soon works. */
export interface ParleyChatProps {
  /** The agent's key, `agnt_key-…`; it may be public. Needed to chat with an agent of this server. */
  apiKey?: string | undefined
  /** The id of the agent that the key must belong to; another one is `onError` `agent_mismatch`. */
  agentId?: string | undefined
  /** The chat completions address of a server; its origin is also where the widget comes from unless `widgetUrl` says. */
  endpoint?: string | undefined
  /** The agent's own choice unless given. */
  model?: string | undefined
  /** Goes with each turn, marked as provided by the page: it never replaces the agent's instructions. */
  system?: string | undefined
  /** Heads a chat in which nobody has written yet. */
  welcomeMessage?: string | undefined
  /** The agent's title unless given, else its name. */
  title?: string | undefined
  /** @defaultValue 'auto' */
  theme?: 'light' | 'dark' | 'auto' | undefined
  /** @defaultValue 'bottom-right' */
  position?: 'bottom-right' | 'bottom-left' | undefined
  /** Any color of CSS. @defaultValue '#4f46e5' */
  primaryColor?: string | undefined
  /** Of the window: pixels, or a length of CSS. @defaultValue 360 */
  width?: string | number | undefined
  /** Of the window: pixels, or a length of CSS. @defaultValue 420 */
  height?: string | number | undefined
  /** @defaultValue false */
  autoOpen?: boolean | undefined
  /** The first message of the assistant, never sent to the model; the agent's own unless given. */
  greeting?: string | undefined
  /** @defaultValue 'Type a message...', in the person's language */
  placeholder?: string | undefined
  /** What the agent should know of the page; another object is an update, the same one changed is not. @defaultValue {} */
  context?: Record<string, unknown> | undefined
  /** Tools of the page; `onToolCall` answers them. @defaultValue [] */
  tools?: readonly PageTool[] | undefined
  /** Names of events in the console. @defaultValue false */
  debug?: boolean | undefined
  /** A provider's own key, with `endpoint`, where the server's operator allows it: everybody can read it in the page. */
  providerApiKey?: string | undefined
  /** Headers for `endpoint`. */
  headers?: Record<string, string> | undefined
  /** The address of the server the widget comes from; else that of `endpoint`, else the page's own. */
  widgetUrl?: string | undefined
  /** The floating button. @defaultValue true */
  defaultUI?: boolean | undefined
  /** Beyond the contract: the language of the widget's words (BCP 47); the browser's unless given. */
  language?: string | undefined
  /** Beyond the contract: whether the conversation survives a reload. @defaultValue true */
  history?: boolean | undefined
  /** Beyond the contract: the id of an element to stand in, instead of a window above the page. */
  containerId?: string | undefined
  onReady?: (() => void) | undefined
  onOpen?: (() => void) | undefined
  onClose?: (() => void) | undefined
  onInsert?: ((insertion: Insertion) => void) | undefined
  onToolCall?: ((tool: string, args: Record<string, unknown>, sendResult: SendResult) => unknown) | undefined
  onUserShare?: ((data: Share) => void) | undefined
  onError?: ((error: WidgetError) => void) | undefined
}
