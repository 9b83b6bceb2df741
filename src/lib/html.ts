/** Writes HTML in which whatever somebody else has said is text and nothing else. */

/** Markup of ours, as opposed to text. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Value = string | number | Html | readonly Html[] | undefined

/** Markup with values in it: texts are escaped, for between tags and for within double quotes; what is undefined is nothing. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  const pieces = strings.map((string, index) => string + renderValue(values[index]))
  return new Html(pieces.join(''))
}

function renderValue(value: Value): string {
  if (value === undefined) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(({ text }) => text).join('')
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Text that can stand between double quotes, and between tags. */
export function escapeAttribute(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] as string)
}
