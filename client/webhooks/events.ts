/** Lists and names the events of webhooks. */
import type { Key } from '../strings/catalogue.ts'
import { t } from '../strings/language.ts'
import type { EventType } from './queries.ts'

/** All event types: those of a conversation in the order in which they occur, then the others. */
export const eventTypes = [
  'conversation.created',
  'conversation.waiting',
  'conversation.taken_over',
  'conversation.message',
  'conversation.handed_back',
  'conversation.rated',
  'conversation.deleted',
  'turn.failed',
  'visitor.erased',
  'budget.threshold_reached',
  'budget.exhausted',
] as const satisfies readonly EventType[]

/** Fails to compile if the server sends an event that is not in the list. */
type Unlisted = Exclude<EventType, (typeof eventTypes)[number]>
const hasAll: [Unlisted] extends [never] ? true : never = true

function isEventType(type: string): type is EventType {
  return hasAll && eventTypes.some((one) => one === type)
}

/** Returns the name of an event. Returns the type itself if this version does not know it. */
export function nameEvent(type: string): string {
  if (type === 'webhook.test') return t('webhooks.webhook.test')
  return isEventType(type) ? t(`webhooks.${type}` satisfies Key) : type
}

/** Returns the name of the first event and the number of the others. */
export function summarizeEvents(events: readonly EventType[]): string {
  const [first] = eventTypes.filter((type) => events.includes(type))
  if (events.length === eventTypes.length) return t('webhooks.allEvents')
  if (first === undefined) return t('common.none')
  return events.length === 1
    ? nameEvent(first)
    : t('webhooks.moreEvents', { first: nameEvent(first), count: events.length - 1 })
}
