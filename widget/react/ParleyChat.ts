/** Provides the React component, which renders nothing and keeps the page's widget in sync with its props. */
import { useEffect, useRef, useState } from 'react'
import * as extras from '../extras/main.ts'
import type {
  ChatMessageEvent,
  Insertion,
  SendResult,
  Share,
  WidgetCallbacks,
  WidgetError,
} from '../host/events.ts'
import type { Widget } from '../host/page.ts'
import { mountWidget } from '../host/widget.ts'
import type { PageTool, ProactiveRule } from '../options.ts'

/**
 * Callbacks whose presence changes the widget's behavior, so they are passed on only if the page sets them.
 */
type OptionalCallbacks = Pick<ParleyChatProps, 'onInsert' | 'onToolCall' | 'onUserShare' | 'getVisitorToken'>

type DataProps = Omit<ParleyChatProps, keyof WidgetCallbacks> & OptionalCallbacks

/** Mounts the widget. A page can have only one; a second component logs a warning. */
export function ParleyChat(props: ParleyChatProps): null {
  const latest = useRef(props)
  const widget = useRef<Widget | undefined>(undefined)
  const shown = useRef<DataProps>({})
  const [callbacks] = useState(() => followCallbacks(latest))
  const { containerId } = props

  useEffect(() => {
    latest.current = props
  })

  useEffect(() => {
    const data = toData(latest.current, callbacks)
    const mounted = mountWidget({ ...callbacks, containerId, ...data }, parts)
    widget.current = mounted
    shown.current = data
    return () => mounted?.destroy()
  }, [containerId, callbacks])

  useEffect(() => {
    const data = toData(props, callbacks)
    const changes = listChanges(shown.current, data)
    shown.current = data
    if (Object.keys(changes).length > 0) widget.current?.configure(changes)
  })

  return null
}

const parts = {
  scriptUrl: undefined,
  loadExtras: () => Promise.resolve(extras),
  importScript: (url: string) => import(/* webpackIgnore: true */ /* @vite-ignore */ url),
}

function toData(
  {
    onReady: _onReady,
    onOpen: _onOpen,
    onClose: _onClose,
    onMessage: _onMessage,
    onUnread: _onUnread,
    onInsert,
    onToolCall,
    onUserShare,
    onError: _onError,
    getVisitorToken,
    ...data
  }: ParleyChatProps,
  callbacks: Required<WidgetCallbacks>,
): DataProps {
  return {
    ...data,
    onInsert: onInsert && callbacks.onInsert,
    onToolCall: onToolCall && callbacks.onToolCall,
    onUserShare: onUserShare && callbacks.onUserShare,
    getVisitorToken: getVisitorToken && callbacks.getVisitorToken,
  }
}

/** Returns callbacks that never change and that call the newest props' callbacks. */
function followCallbacks(latest: { readonly current: ParleyChatProps }): Required<WidgetCallbacks> {
  return {
    onReady: () => latest.current.onReady?.(),
    onOpen: () => latest.current.onOpen?.(),
    onClose: () => latest.current.onClose?.(),
    onMessage: (message) => latest.current.onMessage?.(message),
    onUnread: (unread) => latest.current.onUnread?.(unread),
    onInsert: (insertion) => latest.current.onInsert?.(insertion),
    onToolCall: (tool, args, sendResult) => latest.current.onToolCall?.(tool, args, sendResult),
    onUserShare: (data) => latest.current.onUserShare?.(data),
    onError: (error) => latest.current.onError?.(error),
    getVisitorToken: async () => (await latest.current.getVisitorToken?.()) ?? '',
  }
}

/** Returns the changed props, with undefined for removed props. Compares the context by reference. */
function listChanges(before: DataProps, after: DataProps): DataProps {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof DataProps)[]
  const changed = names.filter((name) => !isSame(name, before[name], after[name]))
  return Object.fromEntries(changed.map((name) => [name, after[name]]))
}

/** Compares `tools`, `headers` and `rules` by value, because inline props are new objects at each render. */
function isSame(name: keyof DataProps, before: unknown, after: unknown): boolean {
  if (name !== 'tools' && name !== 'headers' && name !== 'rules') return Object.is(before, after)
  return JSON.stringify(before) === JSON.stringify(after)
}

export interface ParleyChatProps {
  /** The agent key, `agnt_key-…`, which may be public. Required to chat with an agent of this server. */
  apiKey?: string | undefined
  /** Id of the key's agent; if it differs, `onError` receives `agent_mismatch`. */
  agentId?: string | undefined
  /** URL of a chat completions API; its origin also serves the widget unless `widgetUrl` is set. */
  endpoint?: string | undefined
  /** Default: the agent's model. */
  model?: string | undefined
  /**
   * Instructions that are sent with each turn and marked as provided by the page. They never replace the
   * agent's instructions.
   */
  system?: string | undefined
  /** Shown at the top of an empty chat. */
  welcomeMessage?: string | undefined
  /** Default: the agent's title, or its name. */
  title?: string | undefined
  /** @defaultValue 'auto' */
  theme?: 'light' | 'dark' | 'auto' | undefined
  /** @defaultValue 'bottom-right' */
  position?: 'bottom-right' | 'bottom-left' | undefined
  /** Any CSS color. @defaultValue '#4f46e5' */
  primaryColor?: string | undefined
  /** Width of the window, in pixels or as a CSS length. @defaultValue 400 */
  width?: string | number | undefined
  /** Height of the window, in pixels or as a CSS length. @defaultValue 720 */
  height?: string | number | undefined
  /** @defaultValue false */
  autoOpen?: boolean | undefined
  /**
   * Image next to the title: a `data:` URL, or a URL on a site that the agent's theme uses for its images.
   */
  avatar?: string | undefined
  /** Image that replaces the title in the header. */
  logo?: string | undefined
  headerStyle?: 'plain' | 'solid' | 'gradient' | undefined
  /** Any CSS color. Default: the primary color. */
  headerColor?: string | undefined
  launcherIcon?: 'chat' | 'question' | 'sparkles' | 'wave' | 'avatar' | undefined
  /** Text next to the launcher's icon. */
  launcherLabel?: string | undefined
  /** Text of the bubble above the closed launcher. */
  teaser?: string | undefined
  /** Seconds after which the teaser appears. @defaultValue 3 */
  teaserDelay?: number | undefined
  font?: 'inter' | 'system' | 'rounded' | 'serif' | 'mono' | undefined
  /** Radius of the window's corners, in pixels. @defaultValue 16 */
  radius?: number | undefined
  density?: 'comfortable' | 'compact' | undefined
  /** When the frame loads. @defaultValue 'open' */
  load?: 'open' | 'idle' | undefined
  /** Whether the window is open again on the next page of the same tab. @defaultValue true */
  rememberOpen?: boolean | undefined
  /** Opens the chat or shows a teaser when a condition is met. @defaultValue [] */
  rules?: readonly ProactiveRule[] | undefined
  /** Whether a short tone announces unread messages. @defaultValue false */
  sound?: boolean | undefined
  /** Whether the page's title shows the number of unread messages. @defaultValue false */
  titleBadge?: boolean | undefined
  /** The assistant's first message, which is not sent to the model. Default: the agent's greeting. */
  greeting?: string | undefined
  /** @defaultValue 'Type a message...', in the visitor's language */
  placeholder?: string | undefined
  /** Information about the page for the agent; pass a new object to change it. @defaultValue {} */
  context?: Record<string, unknown> | undefined
  /** Page tools, which `onToolCall` runs. @defaultValue [] */
  tools?: readonly PageTool[] | undefined
  /** Logs event names to the console. @defaultValue false */
  debug?: boolean | undefined
  /** A provider's key for `endpoint`, if the operator allows it. Every visitor to the page can read it. */
  providerApiKey?: string | undefined
  /** Headers for `endpoint`. */
  headers?: Record<string, string> | undefined
  /** URL of the server that serves the widget. Default: the origin of `endpoint` or the page. */
  widgetUrl?: string | undefined
  /** Whether the floating button is shown. @defaultValue true */
  defaultUI?: boolean | undefined
  /** Language of the widget's texts (BCP 47). Default: the browser's language. */
  language?: string | undefined
  /** Whether the conversation survives a reload. @defaultValue true */
  history?: boolean | undefined
  /** Your id for the signed-in user; each user has a separate stored conversation. */
  user?: string | undefined
  /** A JWT in which your server states who the user is. */
  visitorToken?: string | undefined
  /** Returns a JWT when the widget needs one, for example because the last one has expired. */
  getVisitorToken?: (() => Promise<string>) | undefined
  /** Id of an element that contains the widget, instead of a window above the page. */
  containerId?: string | undefined
  onReady?: (() => void) | undefined
  onOpen?: (() => void) | undefined
  onClose?: (() => void) | undefined
  /**
   * Called when a question was sent, an answer has ended or a person has answered; never receives the text.
   */
  onMessage?: ((message: ChatMessageEvent) => void) | undefined
  onUnread?: ((unread: { readonly count: number }) => void) | undefined
  onInsert?: ((insertion: Insertion) => void) | undefined
  onToolCall?: ((tool: string, args: Record<string, unknown>, sendResult: SendResult) => unknown) | undefined
  onUserShare?: ((data: Share) => void) | undefined
  onError?: ((error: WidgetError) => void) | undefined
}
