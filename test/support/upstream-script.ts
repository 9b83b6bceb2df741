/** Parses the scripted model provider's directives. */

export type Json = Record<string, unknown>

export interface ChatBody extends Json {
  messages?: { role?: string; content?: unknown }[]
}

/** The directives `{{up:name value}}` in a text, and the text without them. */
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

  /** Returns a directive's number; 0 without a number, undefined if the directive is absent. */
  number(name: string): number | undefined {
    const value = this.text(name)
    return value === undefined ? undefined : Number(value)
  }
}

/** Returns the offset after the `}}` that matches the `{{` at `open`; braces can be nested. */
function findClose(text: string, open: number): number {
  let depth = 0
  for (let place = open; place < text.length; place++) {
    if (text[place] === '{') depth++
    if (text[place] === '}' && --depth === 0) return place + 1
  }
  return text.length
}

/** Returns the text of a message's content, which can be a string or a list of parts. */
export function toText(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: Json) => part.text ?? part).join(' ') : ''
}

/** Returns the part of a request that can contain directives. */
export function scriptText(body: Json): string {
  const { messages, input } = body as ChatBody
  return toText(messages?.findLast((message) => message.role === 'user')?.content ?? input)
}
