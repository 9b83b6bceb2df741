/** Whether what came over the port is a message of the contract: the page may be anybody's. Security: 2.11. */
import type { PageMessage } from '../messages.ts'
import type { FrameOptions } from '../options.ts'

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
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
  theme: isOneOf('light', 'dark', 'auto'),
  primaryColor: isText,
  greeting: optional(isText),
  placeholder: optional(isText),
  debug: isFlag,
  headers: optional((value) => isRecord(value) && Object.values(value).every(isText)),
  providerApiKey: optional(isText),
  language: optional(isText),
  history: isFlag,
  isInline: isFlag,
}

const messageChecks: Readonly<Record<PageMessage['type'], (message: Record<string, unknown>) => boolean>> = {
  configure: ({ options }) => isRecord(options) && hasOptions(options),
  context: ({ context }) => isRecord(context),
  visibility: ({ isOpen }) => isFlag(isOpen),
  focus: () => true,
  mcp: ({ message }) => isRecord(message),
}

/** Whether the page may say that. Fields nobody knows are passed over, so that a newer page can speak to an older frame. */
export function isPageMessage(data: unknown): data is PageMessage {
  if (!isRecord(data) || typeof data.type !== 'string') return false
  if (!Object.hasOwn(messageChecks, data.type)) return false
  return messageChecks[data.type as PageMessage['type']](data)
}

/** Whether it is an object of named values, and no list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function hasOptions(options: Record<string, unknown>): boolean {
  return Object.entries(optionChecks).every(([name, check]) => check(options[name]))
}
