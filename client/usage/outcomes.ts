/** Names the outcomes of calls. */
import { t } from '../strings/language.ts'

/** Outcomes that users can filter by; calls with other outcomes appear only in the unfiltered list. */
export const outcomes = [
  'ok',
  'left',
  'backend_error',
  'backend_timeout',
  'backend_unavailable',
  'insufficient_quota',
] as const

export function nameOutcome(status: string): string {
  const known = outcomes.find((one) => one === status)
  return known === undefined ? status : t(`usage.${known}`)
}
