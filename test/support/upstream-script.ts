/** Parses the scripts of the upstream, and finds them in requests. */

export type Json = Record<string, unknown>

export interface ChatBody extends Json {
  messages?: { role?: string; content?: unknown }[]
}

/** The directives `{{up:name value}}` of one request, and the text around them. */
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

  /** Returns the number of a directive: 0 if it has none, undefined if the directive is absent. */
  number(name: string): number | undefined {
    const value = this.text(name)
    return value === undefined ? undefined : Number(value)
  }
}

/** Finds the position after the braces that match those at `open`; a value may contain balanced braces. */
function findClose(text: string, open: number): number {
  let depth = 0
  for (let place = open; place < text.length; place++) {
    if (text[place] === '{') depth++
    if (text[place] === '}' && --depth === 0) return place + 1
  }
  return text.length
}

/** Returns the text of a message's content in any form. */
export function toText(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: Json) => part.text ?? part).join(' ') : ''
}

/** Returns the text that contains the directives. */
export function scriptText(body: Json): string {
  const { messages, input } = body as ChatBody
  return toText(messages?.findLast((message) => message.role === 'user')?.content ?? input)
}
