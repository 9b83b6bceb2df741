/** JSON as people read it. */

/** Indented; text that is no JSON as it is. Characters that cannot be seen, or turn text around, are written as escapes. */
export function renderJson(text: string): string {
  try {
    return showUnseen(JSON.stringify(JSON.parse(text === '' ? '{}' : text), null, 2))
  } catch {
    return showUnseen(text)
  }
}

function showUnseen(text: string): string {
  return text.replaceAll(
    /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
