/** Reads the page's options; reports each invalid one and uses its default. */

import { defaultOptions, type FrameOptions, type WidgetOptions } from '../options.ts'
import { isRecord, isText, publicPartOf, toPlain } from '../values.ts'
import type { WidgetCallbacks } from './events.ts'

/** The options that a page may pass, all optional. */
export type GivenOptions = {
  readonly [Name in keyof WidgetOptions]?: WidgetOptions[Name] | undefined
} & WidgetCallbacks

export type ReadOptions = WidgetOptions & WidgetCallbacks

/** Converts an option's value to the widget's format; returns undefined if the value is invalid. */
type Read = (value: unknown) => unknown

const accept =
  (isUsable: (value: unknown) => boolean): Read =>
  (value) =>
    isUsable(value) ? value : undefined

const matching = (pattern: RegExp) => accept((value) => isText(value) && pattern.test(value))

const text = accept(isText)

const callback = accept((value) => typeof value === 'function')

/** Accepts booleans and their text form in attributes. */
const flag: Read = (value) => ({ true: true, '': true, false: false })[String(value)]

/** Whether a host name, as browsers normalize it, always refers to this machine. */
export function isLocal(hostname: string): boolean {
  return /localhost$|^127[.\d]+$|^\[::1/.test(hostname)
}

/** Accepts an http or https address; returns it as an absolute URL. Browsers block http on https pages, except on this machine. */
const webAddress: Read = (value) => {
  const url = isText(value) ? toUrl(value) : undefined
  const schemes = `${url?.protocol} ${location.protocol}`
  const isBlocked = schemes === 'http: https:' && !isLocal((url as URL).hostname)
  return /^https?:/.test(schemes) && !isBlocked ? url?.href : undefined
}

/** Accepts a number of pixels or seconds, also as text. */
const count: Read = (value) => (Number(value) >= 0 ? Number(value) : undefined)

/** Accepts a number of pixels or a CSS length, but not a CSS keyword. */
const length: Read = (value) => {
  const css = Number(value) > 0 ? `${value}px` : value
  return isText(css) && /\d/.test(css) && CSS.supports('width', css) ? css : undefined
}

/**
 * Resolves an address against the page's URL instead of `<base>`, which user content may contain; undefined
 * if the address is invalid.
 */
function toUrl(address: string): URL | undefined {
  try {
    return new URL(address, location.href)
  } catch {
    return undefined
  }
}

/** Readers for options whose name and default do not determine how to read them. */
const readers: Readonly<Record<string, Read>> = {
  endpoint: webAddress,
  theme: matching(/^(light|dark|auto)$/),
  headers: accept(isRecord),
  position: matching(/^bottom-(right|left)$/),
  headerStyle: matching(/^(plain|solid|gradient)$/),
  launcherIcon: matching(/^(chat|question|sparkles|wave|avatar)$/),
  font: matching(/^(inter|system|rounded|serif|mono)$/),
  density: matching(/^(comfortable|compact)$/),
  load: matching(/^(open|idle)$/),
  radius: count,
  teaserDelay: count,
  rules: accept(Array.isArray),
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

/** Merges the options with the defaults, and calls `reject` with the name of each invalid option. */
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
export function toFrameOptions({
  context: _context,
  tools: _tools,
  rules: _rules,
  ...options
}: ReadOptions): FrameOptions {
  return toPlain({ ...options, isInline: options.containerId !== undefined, given: Object.keys(options) })
}

/** Returns the origin of the server: that of `widgetUrl`, `endpoint`, the script or the page. */
function serverOf(
  { widgetUrl, endpoint }: Pick<WidgetOptions, 'widgetUrl' | 'endpoint'>,
  scriptUrl = '',
): string {
  return `${toUrl(widgetUrl ?? endpoint ?? scriptUrl)?.origin}`
}

/** Returns the address of the script that contains the agent's theme. */
export function themeAddressOf(options: ReadOptions, scriptUrl: string | undefined): string {
  return `${serverOf(options, scriptUrl)}/embed/agent.js?key=${publicPartOf(options.apiKey)}`
}

/**
 * Returns the frame's address, which contains only the key's public part.
 */
export function frameAddressOf(
  options: Pick<WidgetOptions, 'widgetUrl' | 'endpoint' | 'apiKey'>,
  scriptUrl: string | undefined,
): string {
  return `${serverOf(options, scriptUrl)}/embed/frame?key=${publicPartOf(options.apiKey)}`
}
