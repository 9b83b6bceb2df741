/** Reads the page's options; reports each invalid one and uses its default. */

import { defaultOptions, type FrameOptions, type WidgetOptions } from '../options.ts'
import { isRecord, isText, publicPartOf, toPlain } from '../values.ts'
import type { WidgetCallbacks } from './events.ts'

/** What a page may pass; everything may be left out. */
export type GivenOptions = {
  readonly [Name in keyof WidgetOptions]?: WidgetOptions[Name] | undefined
} & WidgetCallbacks

export type ReadOptions = WidgetOptions & WidgetCallbacks

/** The value as it is used; undefined for one that cannot be. */
type Read = (value: unknown) => unknown

const accept =
  (isUsable: (value: unknown) => boolean): Read =>
  (value) =>
    isUsable(value) ? value : undefined

const matching = (pattern: RegExp) => accept((value) => isText(value) && pattern.test(value))

const text = accept(isText)

const callback = accept((value) => typeof value === 'function')

/** As attributes have them too. */
const flag: Read = (value) => ({ true: true, '': true, false: false })[String(value)]

const color = accept((value) => isText(value) && CSS.supports('color', value) && !value.includes('var('))

const webAddress = accept((value) => isText(value) && /^https?:/.test(toUrl(value)?.href ?? ''))

const tools = accept((value) => Array.isArray(value) && value.every(isTool))

/** A number of pixels, or a length of CSS that is none of its keywords. */
const length: Read = (value) => {
  const css = Number(value) > 0 ? `${value}px` : value
  return isText(css) && /\d/.test(css) && CSS.supports('width', css) ? css : undefined
}

/** Resolves an address against the page's own; user content can contain a `<base>`. Undefined for an invalid one. */
function toUrl(address: string): URL | undefined {
  try {
    return new URL(address, location.href)
  } catch {
    return undefined
  }
}

function isTool(value: unknown): boolean {
  return isRecord(value) && isRecord(value.function) && isToolName(value.function.name)
}

/** Whether the chat API takes the name, with `postMessage_` in front. */
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

/** The options over their defaults. `refuse` is called with the name of each one that cannot be used. */
export function readOptions(given: GivenOptions, refuse: (name: string) => void): ReadOptions {
  const read: Record<string, unknown> = { ...defaultOptions, width: '360px', height: '420px' }
  for (const name of Object.keys(readers) as (keyof ReadOptions)[]) {
    // `null` is how React and JSON say that there is nothing.
    const value = given[name] ?? undefined
    const usable = value === undefined ? undefined : readers[name](value)
    if (usable !== undefined) read[name] = usable
    else if (value !== undefined) refuse(name)
  }
  return read as unknown as ReadOptions
}

/** What of it the frame is told; it passes over what concerns the page alone. */
export function toFrameOptions({ context: _context, tools: _tools, ...options }: ReadOptions): FrameOptions {
  return toPlain({ ...options, isInline: options.containerId !== undefined })
}

/**
 * The frame's address: of the key it holds the public part alone. Its server is the first of these that is given: `widgetUrl`,
 * `endpoint`, where the script came from; else the page's own.
 */
export function frameAddressOf(
  { widgetUrl, endpoint, apiKey }: Pick<WidgetOptions, 'widgetUrl' | 'endpoint' | 'apiKey'>,
  scriptUrl: string | undefined,
): string {
  const origin = toUrl(widgetUrl ?? endpoint ?? scriptUrl ?? '')?.origin
  return `${origin}/embed/frame?key=${publicPartOf(apiKey)}`
}
