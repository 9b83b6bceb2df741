/** Renders the code that embeds the widget, or calls the agent. */

/** Options of the widget by name. */
export type Options = Readonly<Record<string, string | number | boolean>>

interface Embedding {
  readonly origin: string
  readonly agentKey: string
  readonly options: Options
}

/**
 * Length of the agent key's public part. If the script's address contains it, the script includes the agent's
 * theme (docs/widget.md).
 */
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
