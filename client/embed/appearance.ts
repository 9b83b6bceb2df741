/** Defines the widget's appearance options and renders the code that embeds it. */

export interface Looks {
  readonly theme: 'light' | 'dark' | 'auto'
  readonly position: 'bottom-right' | 'bottom-left'
  readonly primaryColor: string
  readonly title: string
  readonly greeting: string
  readonly welcomeMessage: string
  readonly placeholder: string
  readonly autoOpen: boolean
}

/** The widget's defaults, which the embed code omits. */
export const defaultLooks: Looks = {
  theme: 'auto',
  position: 'bottom-right',
  primaryColor: '#4f46e5',
  title: '',
  greeting: '',
  welcomeMessage: '',
  placeholder: '',
  autoOpen: false,
}

/** Lists the options that differ from the defaults. */
export function listChanges(looks: Looks): [name: keyof Looks, value: string | boolean][] {
  return (Object.entries(looks) as [keyof Looks, string | boolean][]).filter(
    ([name, value]) => value !== defaultLooks[name],
  )
}

interface Embedding {
  /** This server's origin. */
  readonly origin: string
  readonly agentKey: string
  readonly looks: Looks
}

export function renderScript({ origin, agentKey, looks }: Embedding): string {
  const attributes = listChanges(looks).map(([name, value]) => {
    const attribute = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    return `  data-${attribute}="${escapeAttribute(String(value))}"\n`
  })
  return `<script\n  src="${origin}/embed/parley.js"\n  data-api-key="${agentKey}"\n${attributes.join('')}  async\n></script>`
}

export function renderReact({ origin, agentKey, looks }: Embedding): string {
  const props = listChanges(looks).map(([name, value]) =>
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

export function renderCurl({ origin, agentKey }: Embedding): string {
  return `curl -N ${origin}/v1/chat/completions \\
  -H 'Authorization: Bearer ${agentKey}' \\
  -H 'Content-Type: application/json' \\
  -d '{"messages": [{"role": "user", "content": "Hello"}], "stream": true}'`
}

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
}
