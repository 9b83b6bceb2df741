/** What went wrong, for the page and for its developer. */
import type { WidgetErrorCode } from '../messages.ts'
import { callPage, dispatch, type WidgetCallbacks } from './events.ts'
import { warn } from './say.ts'

/** What the developer of the page has to change something for stands in the console too. */
const mistakes = /^(already_mounted|container_not_found|invalid_option|frame_unreachable)$/

/** Tells the page; `detail` says which, and is never a key or a text of somebody's. */
export function reportFailure({ onError }: WidgetCallbacks, code: WidgetErrorCode, detail = ''): void {
  const error = Object.assign(new Error(detail || code), { code })
  if (mistakes.test(code)) warn(`${code} ${detail}`)
  dispatch('error', error)
  if (typeof onError === 'function') callPage(() => onError(error))
}

/** An option has a value that cannot be used. */
export function reportInvalid(callbacks: WidgetCallbacks, name: string): void {
  reportFailure(callbacks, 'invalid_option', name)
}
