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

/** The absolute address. */
const webAddress: Read = (value) => {
  const { href = '' } = (isText(value) && toUrl(value)) || {}
  return /^https?:/.test(href) ? href : undefined
}

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

/** The readers of options whose names and defaults do not tell how they are read. */
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

/** The options over their defaults. `refuse` is called with the name of each one that cannot be used. */
export function readOptions(given: GivenOptions, refuse: (name: string) => void): ReadOptions {
  const read: Record<string, unknown> = { ...defaultOptions, width: '360px', height: '420px' }
  for (const [name, value] of Object.entries(given)) {
    // `null` is how React and JSON say that there is nothing.
    if (value == null) continue
    const usable = readerOf(name)(value)
    if (usable !== undefined) read[name] = usable
    else refuse(name)
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
