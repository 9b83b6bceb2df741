/** Text as HTML takes it. */

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Text that can stand between double quotes, and between tags. */
export function escapeAttribute(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] as string)
}
