/** Renders HTML and escapes every value that is not markup. */

export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Value = string | number | Html | readonly Html[] | undefined

/**
 * Builds markup with escaped values, for use between tags and in double-quoted attributes; renders
 * `undefined` as an empty string.
 */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(strings.map((string, index) => string + renderValue(values[index])).join(''))
}

function renderValue(value: Value): string {
  if (value === undefined) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(({ text }) => text).join('')
  return escapeAttribute(String(value))
}

export function escapeAttribute(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
