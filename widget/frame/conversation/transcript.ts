/** A conversation as plain text, for a person to share. */
import type { Language } from '../strings/strings.ts'
import { type Entry, textOf } from './state.ts'

/** Who said what, in the person's language; tool calls are left out. */
export function renderTranscript(entries: readonly Entry[], { strings }: Language): string {
  return entries
    .map((entry) =>
      entry.kind === 'user'
        ? `${strings.youSaid}:\n${entry.text}`
        : `${strings.assistantSaid}:\n${textOf(entry)}`,
    )
    .join('\n\n')
}
