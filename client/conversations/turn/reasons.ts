/** Names the reasons of ratings. */
import type { PlainKey } from '../../strings/catalogue.ts'
import { t } from '../../strings/language.ts'
import type { Rating } from '../queries.ts'

type Reason = NonNullable<Rating['reason']>

export const reasonNames = {
  incorrect: 'conversations.reasonIncorrect',
  incomplete: 'conversations.reasonIncomplete',
  off_topic: 'conversations.reasonOffTopic',
  unsafe: 'conversations.reasonUnsafe',
  too_slow: 'conversations.reasonTooSlow',
  other: 'conversations.reasonOther',
} as const satisfies Record<Reason, PlainKey>

export const reasons = Object.keys(reasonNames) as Reason[]

/** Returns the name of a reason. Returns an unknown reason unchanged. */
export function nameReason(reason: string): string {
  const known = reasons.find((one) => one === reason)
  return known === undefined ? reason : t(reasonNames[known])
}
