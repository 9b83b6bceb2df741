/** The context of a page as it travels to the frame. */
import type { WidgetErrorCode } from '../messages.ts'
import { isRecord } from './read-options.ts'

/** As UTF-8. Security: 2.5. */
const MOST_CONTEXT_BYTES = 64 * 1024

/** What of it JSON can hold; the code of an error where that is too much, or nothing. */
export function toContext(context: unknown): Record<string, unknown> | WidgetErrorCode {
  try {
    const text = JSON.stringify(context)
    if (new TextEncoder().encode(text).length > MOST_CONTEXT_BYTES) return 'context_too_large'
    const plain: unknown = JSON.parse(text)
    return isRecord(plain) ? plain : 'invalid_option'
  } catch {
    return 'invalid_option'
  }
}
