/** The script of the upstream: what directives are, and where a request carries them. */

export type Json = Record<string, unknown>

export interface ChatBody extends Json {
  messages?: { role?: string; content?: unknown }[]
}

/** The directives `{{up:name value}}` that hold for one request, and the text around them. */
export class Script {
  readonly rest: string
  private readonly directives: { name: string; value: string }[] = []

  constructor(text: string) {
    let rest = ''
    let start = 0
    for (let open = text.indexOf('{{up:'); open !== -1; open = text.indexOf('{{up:', start)) {
      rest += text.slice(start, open)
      start = findClose(text, open)
      const [, name = '', value = ''] = /^([a-z-]+)\s*([\s\S]*)$/.exec(text.slice(open + 5, start - 2)) ?? []
      this.directives.push({ name, value })
    }
    this.rest = (rest + text.slice(start)).trim()
  }

  has(name: string): boolean {
    return this.directives.some((directive) => directive.name === name)
  }

  all(name: string): string[] {
    return this.directives.filter((directive) => directive.name === name).map(({ value }) => value)
  }

  text(name: string): string | undefined {
    return this.all(name)[0]
  }

  /** The number behind a directive: 0 when it has none, undefined when the directive is absent. */
  number(name: string): number | undefined {
    const value = this.text(name)
    return value === undefined ? undefined : Number(value)
  }
}

/** The place after the braces that close those at `open`; a value may hold braces, as long as they are in pairs. */
function findClose(text: string, open: number): number {
  let depth = 0
  for (let place = open; place < text.length; place++) {
    if (text[place] === '{') depth++
    if (text[place] === '}' && --depth === 0) return place + 1
  }
  return text.length
}

/** The words of a message's content, of whatever kind it is. */
export function toText(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: Json) => part.text ?? part).join(' ') : ''
}

/** The text that directives are read from. */
export function scriptText(body: Json): string {
  const { messages, input } = body as ChatBody
  return toText(messages?.findLast((message) => message.role === 'user')?.content ?? input)
}
