/**
 * Opens the frame's end of the channel to the page, with a handshake of window messages and then one port.
 */

import {
  type FrameHello,
  type FrameMessage,
  MAX_MESSAGE_LENGTH,
  type PageHello,
  type PageMessage,
  type PortOffer,
  PROTOCOL,
} from '../messages.ts'
import type { FrameOptions } from '../options.ts'
import { isRecord } from '../values.ts'

export interface Channel {
  readonly origin: string
  readonly post: (message: FrameMessage) => void
}

/**
 * Waits for the parent page to connect, and calls `onMessage` with each valid message from it. Ignores
 * messages from other windows and repeated handshakes. If `onTrial` is given, the page must offer a second
 * port, which is passed to `onTrial`.
 */
export function openChannel(
  onMessage: (message: PageMessage, channel: Channel) => void,
  onTrial?: (port: MessagePort) => void,
): void {
  let hello: { readonly origin: string; readonly session: string } | undefined
  let port: MessagePort | undefined
  const count = onTrial === undefined ? 1 : 2

  window.addEventListener('message', ({ source, origin, data, ports }) => {
    // An opaque origin (`null`) identifies no page and cannot be a `postMessage` target.
    if (source !== window.parent || source === window || origin === 'null') return
    if (hello === undefined && isGreeting(data, 'page-hello')) {
      hello = { origin, session: data.session }
      const answer: FrameHello = { protocol: PROTOCOL, type: 'frame-hello', session: data.session }
      window.parent.postMessage(answer, origin)
    } else if (port === undefined && isGreeting(data, 'port') && ports.length === count) {
      if (origin !== hello?.origin || data.session !== hello.session) return
      port = ports[0] as MessagePort
      onTrial?.(ports[1] as MessagePort)
      listen(port, origin, onMessage)
    }
  })
}

function listen(
  port: MessagePort,
  origin: string,
  onMessage: (message: PageMessage, channel: Channel) => void,
): void {
  const channel: Channel = { origin, post: (message) => port.postMessage(message) }
  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (isBounded(data) && isPageMessage(data)) onMessage(data, channel)
  }
}

function isGreeting<T extends 'page-hello' | 'port'>(
  data: unknown,
  type: T,
): data is T extends 'port' ? PortOffer : PageHello {
  const { protocol, type: sent, session } = (data ?? {}) as Partial<Record<keyof PageHello, unknown>>
  return protocol === PROTOCOL && sent === type && typeof session === 'string' && session.length <= 128
}

/**
 * Maximum length of an MCP message, in UTF-16 code units. Higher than for other messages, because
 * `check-tools.ts` drops oversized tools individually.
 */
const MAX_TOOLS_LENGTH = 16 * MAX_MESSAGE_LENGTH

/** Also returns false for data that JSON cannot represent, which the channel does not allow. */
function isBounded(data: unknown): boolean {
  const limit = isRecord(data) && data.type === 'mcp' ? MAX_TOOLS_LENGTH : MAX_MESSAGE_LENGTH
  try {
    return (JSON.stringify(data)?.length ?? 0) <= limit
  } catch {
    return false
  }
}

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
const isNumber: Check = (value) => Number.isFinite(value)
const isTextOrNumber: Check = (value) => isText(value) || isNumber(value)
const isFlag: Check = (value) => typeof value === 'boolean'
const isAbsent: Check = (value) => value === undefined
const isOneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value)
const optional =
  (check: Check): Check =>
  (value) =>
    isAbsent(value) || check(value)

const optionChecks: Readonly<Record<keyof FrameOptions, Check>> = {
  apiKey: optional(isText),
  agentId: optional(isText),
  endpoint: optional(isText),
  model: optional(isText),
  system: optional(isText),
  welcomeMessage: optional(isText),
  title: optional(isText),
  theme: optional(isOneOf('light', 'dark', 'auto')),
  primaryColor: optional(isText),
  avatar: optional(isText),
  logo: optional(isText),
  headerStyle: optional(isOneOf('plain', 'solid', 'gradient')),
  headerColor: optional(isText),
  launcherIcon: optional(isText),
  launcherLabel: optional(isText),
  teaser: optional(isText),
  teaserDelay: optional(isNumber),
  font: optional(isOneOf('inter', 'system', 'rounded', 'serif', 'mono')),
  radius: optional(isNumber),
  density: optional(isOneOf('comfortable', 'compact')),
  position: optional(isText),
  width: optional(isTextOrNumber),
  height: optional(isTextOrNumber),
  greeting: optional(isText),
  placeholder: optional(isText),
  debug: isFlag,
  headers: optional(isRecord),
  providerApiKey: optional(isText),
  language: optional(isText),
  history: isFlag,
  user: optional(isText),
  visitorToken: optional(isText),
  isInline: isFlag,
  given: optional((value) => Array.isArray(value) && value.every(isText)),
}

const messageChecks: Readonly<Record<PageMessage['type'], (message: Record<string, unknown>) => boolean>> = {
  configure: ({ options }) => isRecord(options) && hasOptions(options),
  context: ({ context }) => isRecord(context),
  visibility: ({ isOpen, isExpanded }) => isFlag(isOpen) && optional(isFlag)(isExpanded),
  send: ({ text }) => isText(text),
  prefill: ({ text }) => isText(text),
  focus: () => true,
  logout: () => true,
  resetVisitor: () => true,
  newConversation: () => true,
  identity: ({ token }) => optional(isText)(token),
  share: ({ isReceived }) => isFlag(isReceived),
  mcp: ({ message }) => isRecord(message),
}

/** Checks the message's fields; ignores unknown ones, so that a newer page can talk to an older frame. */
function isPageMessage(data: unknown): data is PageMessage {
  if (!isRecord(data) || typeof data.type !== 'string') return false
  if (!Object.hasOwn(messageChecks, data.type)) return false
  return messageChecks[data.type as PageMessage['type']](data)
}

function hasOptions(options: Record<string, unknown>): boolean {
  return Object.entries(optionChecks).every(([name, check]) => check(options[name]))
}
