/** What went wrong, for the page and for its developer. */
import type { WidgetErrorCode } from '../messages.ts'
import { say } from './developer-log.ts'
import { callPage, dispatch, type WidgetCallbacks } from './events.ts'

/** Tells the page. */
export function tellFailure({ onError }: WidgetCallbacks, code: WidgetErrorCode, text: string): void {
  const error = Object.assign(new Error(text), { code })
  dispatch('error', error)
  if (typeof onError === 'function') callPage(() => onError(error))
}

/** Tells the page, and its developer in the console: `text` is never a key, a context, or somebody's words. */
export function tellMistake(callbacks: WidgetCallbacks, code: WidgetErrorCode, text = ''): void {
  say('warn', `${code} ${text}`)
  tellFailure(callbacks, code, text || code)
}
