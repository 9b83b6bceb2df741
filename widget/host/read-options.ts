/** Reads the page's options; reports each invalid one and uses its default. */

import { defaultOptions, type WidgetOptions } from '../options.ts'
import { isRecord, isText } from '../values.ts'
import { isLocal, toUrl } from './address.ts'
import { dom } from './dom.ts'
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

/** Accepts the texts in a list separated by `|`. */
const oneOf = (texts: string) => accept((value) => texts.split('|').includes(value as string))

const text = accept(isText)

const callback = accept((value) => typeof value === 'function')

/** Accepts booleans and their text form in attributes. */
const flag: Read = (value) => ({ true: true, '': true, false: false })[String(value)]

/**
 * Accepts an http or https address; returns it as an absolute URL. Rejects http on https pages, where
 * browsers allow it only for this machine.
 */
const webAddress: Read = (value) => {
  const url = isText(value) ? toUrl(value) : undefined
  const schemes = `${url?.protocol} ${location.protocol}`
  const isBlocked = schemes === 'http: https:' && !isLocal((url as URL).hostname)
  return /^https?:/.test(schemes) && !isBlocked ? url?.href : undefined
}

/** Accepts a number of pixels or seconds, as a number or as text. */
const count: Read = (value) => (Number(value) >= 0 ? Number(value) : undefined)

/** Accepts a number of pixels or a CSS length, but not a CSS keyword. */
const length: Read = (value) => {
  const css = Number(value) > 0 ? `${value}px` : value
  return isText(css) && /\d/.test(css) && CSS.supports('width', css) ? css : undefined
}

/** Accepts an opaque color. Rejects values that depend on other colors, such as `inherit` or `var(--x)`. */
const color: Read = (value) => {
  const context = dom.createElement('canvas').getContext('2d') ?? { fillStyle: '' }
  context.fillStyle = '#0000'
  // A canvas ignores values that it cannot use. Colors with alpha read as `rgba(…)` or `color(… / …)`.
  context.fillStyle = value as string
  return /current/i.test(value as string) || /a\(|\//.test(`${context.fillStyle}`) ? undefined : value
}

/** Readers for options that are not flags, callbacks or plain text. */
const readers: Readonly<Record<string, Read>> = {
  endpoint: webAddress,
  primaryColor: color,
  headerColor: color,
  theme: oneOf('light|dark|auto'),
  headers: accept(isRecord),
  position: oneOf('bottom-right|bottom-left'),
  headerStyle: oneOf('plain|solid|gradient'),
  launcherIcon: oneOf('chat|question|sparkles|wave|avatar'),
  font: oneOf('inter|system|rounded|serif|mono'),
  density: oneOf('comfortable|compact'),
  load: oneOf('open|idle'),
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
  return readers[name] ?? (/^(on|get)/.test(name) ? callback : text)
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
