/** Reads the page's options; reports each invalid one and uses its default. */

import { defaultOptions, type FrameOptions, type WidgetOptions } from '../options.ts'
import { isRecord, isText, toPlain } from '../values.ts'
import type { WidgetCallbacks } from './events.ts'

/** The options that a page may pass, all optional. */
export type GivenOptions = {
  readonly [Name in keyof WidgetOptions]?: WidgetOptions[Name] | undefined
} & WidgetCallbacks

export type ReadOptions = WidgetOptions & WidgetCallbacks

/** Converts a value to the form that the widget uses; returns undefined for an invalid one. */
type Read = (value: unknown) => unknown

const accept =
  (isUsable: (value: unknown) => boolean): Read =>
  (value) =>
    isUsable(value) ? value : undefined

const matching = (pattern: RegExp) => accept((value) => isText(value) && pattern.test(value))

const text = accept(isText)

const callback = accept((value) => typeof value === 'function')

/** Accepts booleans, and their text form from attributes. */
const flag: Read = (value) => ({ true: true, '': true, false: false })[String(value)]

const color = accept((value) => isText(value) && CSS.supports('color', value) && !value.includes('var('))

const webAddress = accept((value) => isText(value) && /^https?:/.test(toUrl(value)?.href ?? ''))

const tools = accept((value) => Array.isArray(value) && value.every(isTool))

/** Accepts a number of pixels or a CSS length, but not a CSS keyword. */
const length: Read = (value) => {
  const css = Number(value) > 0 ? `${value}px` : value
  return isText(css) && /\d/.test(css) && CSS.supports('width', css) ? css : undefined
}

/** Resolves an address against the page; returns undefined for an invalid one. */
function toUrl(address: string): URL | undefined {
  try {
    return new URL(address, document.baseURI)
  } catch {
    return undefined
  }
}

function isTool(value: unknown): boolean {
  return isRecord(value) && isRecord(value.function) && isToolName(value.function.name)
}

/** Returns whether the chat API accepts the name with the prefix `postMessage_`. */
export function isToolName(name: unknown): name is string {
  return isText(name) && /^[\w-]{1,52}$/.test(name)
}

const readers: Readonly<Record<keyof ReadOptions, Read>> = {
  apiKey: text,
  agentId: text,
  endpoint: webAddress,
  model: text,
  system: text,
  welcomeMessage: text,
  title: text,
  theme: matching(/^(light|dark|auto)$/),
  primaryColor: color,
  greeting: text,
  placeholder: text,
  debug: flag,
  headers: accept((value) => isRecord(value) && Object.values(value).every(isText)),
  providerApiKey: text,
  language: text,
  history: flag,
  position: matching(/^bottom-(right|left)$/),
  width: length,
  height: length,
  autoOpen: flag,
  context: accept(isRecord),
  tools,
  widgetUrl: webAddress,
  defaultUI: flag,
  containerId: text,
  autoMount: flag,
  onReady: callback,
  onOpen: callback,
  onClose: callback,
  onInsert: callback,
  onToolCall: callback,
  onUserShare: callback,
  onError: callback,
}

/** Merges the options over the defaults, and calls `reject` with the name of each invalid one. */
export function readOptions(given: GivenOptions, reject: (name: string) => void): ReadOptions {
  const read: Record<string, unknown> = { ...defaultOptions, width: '360px', height: '420px' }
  for (const name of Object.keys(readers) as (keyof ReadOptions)[]) {
    // React and JSON use `null` for an absent value.
    const value = given[name] ?? undefined
    const usable = value === undefined ? undefined : readers[name](value)
    if (usable !== undefined) read[name] = usable
    else if (value !== undefined) reject(name)
  }
  return read as unknown as ReadOptions
}

/** Returns the options for the frame, which ignores those that concern only the page. */
export function toFrameOptions({ context: _context, tools: _tools, ...options }: ReadOptions): FrameOptions {
  return toPlain({ ...options, isInline: options.containerId !== undefined })
}

/**
 * Returns the frame's address, which contains only the public part of the key. The server is that of `widgetUrl`, of `endpoint`, of
 * the script, or of the page, whichever is given first.
 */
export function frameAddressOf(
  { widgetUrl, endpoint, apiKey = '' }: Pick<WidgetOptions, 'widgetUrl' | 'endpoint' | 'apiKey'>,
  scriptUrl: string | undefined,
): string {
  const origin = toUrl(widgetUrl ?? endpoint ?? scriptUrl ?? '')?.origin
  const [publicPart = ''] = /^agnt_key-[0-9A-Za-z]{12}/.exec(apiKey) ?? []
  return `${origin}/embed/frame?key=${publicPart}`
}
