/** Reads the page's options; reports each invalid one and uses its default. */

import { defaultOptions, type FrameOptions, type WidgetOptions } from '../options.ts'
import { isRecord, isText, publicPartOf, toPlain } from '../values.ts'
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

/** The absolute address. Browsers block HTTP on HTTPS pages, except from the visitor's own machine. */
const webAddress: Read = (value) => {
  const { href = '' } = (isText(value) && toUrl(value)) || {}
  const isBlocked = /^https:http:..(?!localhost|127)/.test(location.protocol + href)
  return /^https?:/.test(href) && !isBlocked ? href : undefined
}

/** Accepts a number of pixels or a CSS length, but not a CSS keyword. */
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

/** The readers of options that cannot be derived from the option's name and default. */
const readers: Readonly<Record<string, Read>> = {
  endpoint: webAddress,
  theme: matching(/^(light|dark|auto)$/),
  headers: accept(isRecord),
  position: matching(/^bottom-(right|left)$/),
  width: length,
  height: length,
  context: accept(isRecord),
  tools: accept(Array.isArray),
  widgetUrl: webAddress,
}

function readerOf(name: string): Read {
  if (typeof defaultOptions[name as 'debug'] === 'boolean') return flag
  return readers[name] ?? (/^on[A-Z]/.test(name) ? callback : text)
}

/** Merges the options over the defaults, and calls `reject` with the name of each invalid one. */
export function readOptions(given: GivenOptions, reject: (name: string) => void): ReadOptions {
  const read: Record<string, unknown> = { ...defaultOptions }
  for (const [name, value] of Object.entries(given)) {
    // React and JSON use `null` for an absent value.
    if (value == null) continue
    const usable = readerOf(name)(value)
    if (usable !== undefined) read[name] = usable
    else reject(name)
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
  { widgetUrl, endpoint, apiKey }: Pick<WidgetOptions, 'widgetUrl' | 'endpoint' | 'apiKey'>,
  scriptUrl: string | undefined,
): string {
  const origin = toUrl(widgetUrl ?? endpoint ?? scriptUrl ?? '')?.origin
  return `${origin}/embed/frame?key=${publicPartOf(apiKey)}`
}
