/** Renders the model's data as text with its invisible characters escaped. */
import { isRecord } from '../../values.ts'

/** Indents JSON and escapes invisible and bidirectional control characters; leaves other text unchanged. */
export function renderJson(text: string): string {
  try {
    return showUnseen(JSON.stringify(JSON.parse(text === '' ? '{}' : text), null, 2))
  } catch {
    return showUnseen(text)
  }
}

/** Escapes invisible and bidirectional control characters. */
export function showUnseen(text: string): string {
  return text.replaceAll(
    /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Parses a JSON object; returns undefined if `text` is anything else. */
export function parseRecord(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
