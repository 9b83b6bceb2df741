/** Reads the widget's appearance from a definition, and renders the code that embeds the widget. */
import { defaultAppearance } from '../../widget/appearance.ts'
import { valueAt } from '../agents/object-paths.ts'
import { isColor } from './check-contrast.ts'

/** Options that only a page can set, because the definition has no fields for them. */
export interface PageOptions {
  readonly welcomeMessage: string
  readonly placeholder: string
  readonly autoOpen: boolean
}

/** The widget's defaults, which the embed code omits. */
export const defaultPageOptions: PageOptions = { welcomeMessage: '', placeholder: '', autoOpen: false }

/** Options of the widget by name. */
export type Options = Readonly<Record<string, string | number | boolean>>

type Definition = Readonly<Record<string, unknown>>

/** Fields without a value have these; an empty text removes the agent's text or image. */
const defaults: Options = {
  theme: 'auto',
  ...defaultAppearance,
  avatar: '',
  logo: '',
  launcherLabel: '',
  teaser: '',
}

/** Returns the options that show a widget as the definition does, on a page with any version of the agent. */
export function readOptions(definition: Definition): Options {
  const { colorScheme, ...theme } = (valueAt(definition, ['embed', 'theme']) ?? {}) as Record<string, unknown>
  const given = { ...theme, theme: colorScheme, title: textAt(definition, 'title') }
  const known = Object.entries(given).filter(([name, value]) => isUsable(name, value)) as [string, string][]
  const options: Options = { ...defaults, title: String(definition.name ?? ''), ...Object.fromEntries(known) }
  const greeting = textAt(definition, 'greeting')
  return {
    headerColor: String(options.primaryColor),
    ...options,
    ...(greeting !== undefined && { greeting }),
  }
}

/** The widget rejects invalid colors, and the form shows their errors. */
function isUsable(name: string, value: unknown): boolean {
  return /Color$/.test(name) ? isColor(value) : value !== undefined && value !== null
}

function textAt(definition: Definition, field: string): string | undefined {
  const text = valueAt(definition, ['embed', field])
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** Returns the options that a page needs until the agent's draft is saved, and those that only a page can set. */
export function listChanges(draft: Definition, saved: Definition, page: PageOptions): Options {
  const [next, now] = [readOptions(draft), readOptions(saved)]
  const isHeaderColored = [draft, saved].some((one) => valueAt(one, ['embed', 'theme', 'headerColor']))
  const changed = Object.entries(next).filter(
    ([name, value]) => value !== now[name] && (name !== 'headerColor' || isHeaderColored),
  )
  const own = Object.entries(page).filter(
    ([name, value]) => value !== defaultPageOptions[name as keyof PageOptions],
  )
  return Object.fromEntries([...changed, ...own])
}

interface Embedding {
  /** This server's origin. */
  readonly origin: string
  readonly agentKey: string
  readonly options: Options
}

/** Length of the key's public part, with which the script contains the agent's theme (docs/widget.md). */
const PUBLIC_KEY_LENGTH = 21

export function renderScript({ origin, agentKey, options }: Embedding): string {
  const attributes = Object.entries(options).map(([name, value]) => {
    const attribute = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    return `  data-${attribute}="${escapeAttribute(String(value))}"\n`
  })
  const address = `${origin}/embed/parley.js?key=${agentKey.slice(0, PUBLIC_KEY_LENGTH)}`
  return `<script\n  src="${address}"\n  data-api-key="${agentKey}"\n${attributes.join('')}  async\n></script>`
}

export function renderReact({ origin, agentKey, options }: Embedding): string {
  const props = Object.entries(options).map(([name, value]) =>
    value === true ? `      ${name}\n` : `      ${name}={${JSON.stringify(value)}}\n`,
  )
  return `import { ParleyChat } from 'parley/react'

function Support() {
  return (
    <ParleyChat
      apiKey="${agentKey}"
      widgetUrl="${origin}"
${props.join('')}    />
  )
}`
}

export function renderCurl({ origin, agentKey }: Omit<Embedding, 'options'>): string {
  return `curl -N ${origin}/v1/chat/completions \\
  -H 'Authorization: Bearer ${agentKey}' \\
  -H 'Content-Type: application/json' \\
  -d '{"messages": [{"role": "user", "content": "Hello"}], "stream": true}'`
}

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
}
