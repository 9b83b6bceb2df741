/** The React component. It renders nothing itself and keeps the page's only widget in line with its props. */
import { useEffect, useRef } from 'react'
import type { Insertion, SendResult, Share, WidgetCallbacks, WidgetError } from '../host/events.ts'
import type { Widget } from '../host/page.ts'
import { mountWidget } from '../host/widget.ts'
import type { PageTool } from '../options.ts'

type DataProps = Omit<ParleyChatProps, keyof WidgetCallbacks>

/** A page can have one widget; a second component only logs a warning. */
export function ParleyChat(props: ParleyChatProps): null {
  const latest = useRef(props)
  const widget = useRef<Widget | undefined>(undefined)
  const shown = useRef<DataProps>({})
  const { containerId } = props

  useEffect(() => {
    latest.current = props
  })

  useEffect(() => {
    const data = toData(latest.current)
    const mounted = mountWidget({ ...data, containerId, ...followCallbacks(latest) })
    widget.current = mounted
    shown.current = data
    return () => mounted?.destroy()
  }, [containerId])

  useEffect(() => {
    const data = toData(props)
    const changes = listChanges(shown.current, data)
    shown.current = data
    if (Object.keys(changes).length > 0) widget.current?.configure(changes)
  })

  return null
}

function toData({
  onReady: _onReady,
  onOpen: _onOpen,
  onClose: _onClose,
  onInsert: _onInsert,
  onToolCall: _onToolCall,
  onUserShare: _onUserShare,
  onError: _onError,
  ...data
}: ParleyChatProps): DataProps {
  return data
}

/** Callbacks that never change, and call the newest ones. */
function followCallbacks(latest: { readonly current: ParleyChatProps }): Required<WidgetCallbacks> {
  return {
    onReady: () => latest.current.onReady?.(),
    onOpen: () => latest.current.onOpen?.(),
    onClose: () => latest.current.onClose?.(),
    onInsert: (insertion) => latest.current.onInsert?.(insertion),
    onToolCall: (tool, args, sendResult) => latest.current.onToolCall?.(tool, args, sendResult),
    onUserShare: (data) => latest.current.onUserShare?.(data),
    onError: (error) => latest.current.onError?.(error),
  }
}

/** The props that differ; undefined for one that is gone. The context is compared by reference. */
function listChanges(before: DataProps, after: DataProps): DataProps {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof DataProps)[]
  const changed = names.filter((name) => !isSame(name, before[name], after[name]))
  return Object.fromEntries(changed.map((name) => [name, after[name]]))
}

/** Lists and records written into the markup are new ones at each rendering, and mostly say the same. */
function isSame(name: keyof DataProps, before: unknown, after: unknown): boolean {
  if (name !== 'tools' && name !== 'headers') return Object.is(before, after)
  return JSON.stringify(before) === JSON.stringify(after)
}

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
  /** Beyond the contract: your id of the signed-in person; each has a stored conversation of their own. */
  user?: string | undefined
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
