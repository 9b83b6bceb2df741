/** Reads what a page sets: whatever cannot be used is named and left at its default. Contract: Chat widget component. */
import { defaultOptions, type FrameOptions, type PageTool, type WidgetOptions } from '../options.ts'
import { toHex } from './color.ts'
import { callbackNames, type WidgetCallbacks } from './events.ts'

/** What a page may pass; everything may be left out. */
export type GivenOptions = {
  readonly [Name in keyof WidgetOptions]?: WidgetOptions[Name] | undefined
} & WidgetCallbacks

export type ReadOptions = WidgetOptions & WidgetCallbacks

/** Undefined for a value that cannot be used. */
type Read = (value: unknown) => unknown

const text: Read = (value) => (typeof value === 'string' ? value : undefined)
const flag: Read = (value) =>
  typeof value === 'boolean' ? value : { true: true, '': true, false: false }[value as string]
const oneOf =
  (...values: readonly unknown[]): Read =>
  (value) =>
    values.find((known) => known === value)
const color: Read = (value) => (typeof value === 'string' ? toHex(value) : undefined)
/** A number of pixels, or a length of CSS that is none of its keywords. */
const length: Read = (value) => {
  const css = typeof value === 'number' || /^[\d.]+$/.test(value as string) ? `${value}px` : value
  return typeof css === 'string' && /\d/.test(css) && CSS.supports('width', css) ? css : undefined
}
const webAddress: Read = (value) =>
  typeof value === 'string' && /^https?:$/.test(toUrl(value)?.protocol ?? '') ? value : undefined

/** An address as the page means it; undefined for none. */
export function toUrl(address: string): URL | undefined {
  try {
    return new URL(address, document.baseURI)
  } catch {
    return undefined
  }
}

const record: Read = (value) => (isRecord(value) ? value : undefined)
const texts: Read = (value) =>
  isRecord(value) && Object.values(value).every((one) => typeof one === 'string') ? value : undefined
const tools: Read = (value) => (Array.isArray(value) && value.every(isTool) ? value : undefined)

/** Longest name, the prefix included. Contract: Chat completions, tools. */
const toolName = /^[\w-]{1,52}$/

function isTool(value: unknown): value is PageTool {
  if (!isRecord(value) || value.type !== 'function' || !isRecord(value.function)) return false
  return isToolName(value.function.name)
}

/** Whether the chat API takes the name, with `postMessage_` in front. */
export function isToolName(name: unknown): name is string {
  return typeof name === 'string' && toolName.test(name)
}

/** Whether it is an object of named values, and no list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const readers: Readonly<Record<keyof WidgetOptions, Read>> = {
  apiKey: text,
  agentId: text,
  endpoint: webAddress,
  model: text,
  system: text,
  welcomeMessage: text,
  title: text,
  theme: oneOf('light', 'dark', 'auto'),
  primaryColor: color,
  greeting: text,
  placeholder: text,
  debug: flag,
  headers: texts,
  providerApiKey: text,
  language: text,
  history: flag,
  position: oneOf('bottom-right', 'bottom-left'),
  width: length,
  height: length,
  autoOpen: flag,
  context: record,
  tools,
  widgetUrl: webAddress,
  defaultUI: flag,
  containerId: text,
  autoMount: flag,
}

/** What can stand in an attribute of the script's tag. */
const compound: readonly string[] = ['context', 'tools', 'headers']
export const attributeNames = (Object.keys(readers) as (keyof WidgetOptions)[]).filter(
  (name) => !compound.includes(name),
)

/** The options over their defaults. `refuse` is called with the name of each one that cannot be used. */
export function readOptions(given: GivenOptions, refuse: (name: string) => void): ReadOptions {
  const read: Record<string, unknown> = { ...defaultOptions, width: '360px', height: '420px' }
  for (const [name, reader] of Object.entries(readers)) {
    const value = given[name as keyof WidgetOptions]
    // What is not there, in the ways that pages, attributes and React say it.
    if (value === undefined || value === null) continue
    const usable = reader(value)
    if (usable === undefined) refuse(name)
    else read[name] = usable
  }
  for (const name of callbackNames) {
    const callback = given[name]
    if (typeof callback === 'function') read[name] = callback
    else if (callback !== undefined && callback !== null) refuse(name)
  }
  return read as unknown as ReadOptions
}

const frameNames = [
  'apiKey',
  'agentId',
  'endpoint',
  'model',
  'system',
  'welcomeMessage',
  'title',
  'theme',
  'primaryColor',
  'greeting',
  'placeholder',
  'debug',
  'headers',
  'providerApiKey',
  'language',
  'history',
] as const satisfies readonly (keyof FrameOptions)[]

/** What of it the frame is told. */
export function toFrameOptions(options: ReadOptions): FrameOptions {
  const told = frameNames.map((name) => [name, options[name]])
  return { ...Object.fromEntries(told), isInline: options.containerId !== undefined } as FrameOptions
}
