/**
 * Describes the filters of the conversations: the quick views, and the parameters that the server receives.
 */
import type { Inputs } from '../../api.ts'
import type { ConversationFilters, ConversationsSearch } from '../../search.ts'
import type { PlainKey } from '../../strings/catalogue.ts'

type ServerFilters = Omit<Inputs['conversations']['list'], 'limit' | 'after' | 'order'>

/** Converts days to Unix seconds; the last day is included. */
export function toServerFilters({ from, to, ...rest }: ConversationFilters): ServerFilters {
  return {
    ...rest,
    ...(from !== undefined && { from: startOf(from, 0) }),
    ...(to !== undefined && { to: startOf(to, 1) }),
  }
}

/** Returns the start of a day, or of a following one, in the browser's time zone. */
function startOf(day: string, daysAfter: number): number {
  const date = new Date(`${day}T00:00:00`)
  date.setDate(date.getDate() + daysAfter)
  return Math.max(0, Math.floor(date.getTime() / 1_000))
}

/** Returns the address of the export of the conversations that match. */
export function exportAddress(filters: ConversationFilters): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(toServerFilters(filters)))
    if (value !== undefined) query.set(name, String(value))
  return `/v1/manager/conversations/export?${query}`
}

/** Separates the filters from the parameters that select what the page shows. */
export function filtersOf({
  turn: _turn,
  item: _item,
  ...filters
}: ConversationsSearch): ConversationFilters {
  return filters
}

export interface FilterProps {
  readonly search: ConversationsSearch
  /** Changes the given parameters of the address; undefined removes one. */
  readonly onChange: (changes: ConversationsSearch) => void
}

type ViewFilters = Pick<ConversationFilters, 'mode' | 'assignee' | 'status' | 'rating'>

const viewFilters = ['mode', 'assignee', 'status', 'rating'] as const satisfies (keyof ViewFilters)[]

export interface View {
  readonly name: string
  readonly label: PlainKey
  readonly filters: ViewFilters
}

/** The quick views. A view sets its own filters, and keeps the filters that no view sets. */
export const views: readonly View[] = [
  { name: 'all', label: 'conversations.all', filters: {} },
  { name: 'waiting', label: 'conversations.waiting', filters: { mode: 'waiting' } },
  { name: 'person', label: 'conversations.withPerson', filters: { mode: 'person' } },
  { name: 'mine', label: 'conversations.mine', filters: { mode: 'person', assignee: 'me' } },
  { name: 'unanswered', label: 'conversations.unanswered', filters: { status: 'unanswered' } },
  { name: 'failed', label: 'conversations.failed', filters: { status: 'failed' } },
  { name: 'down', label: 'conversations.ratedDown', filters: { rating: 'down' } },
]

/** Returns whether the filters are exactly those of the view, apart from filters that views do not set. */
export function isView({ filters }: View, search: ConversationFilters): boolean {
  return viewFilters.every((name) => search[name] === filters[name])
}

/** Returns the changes of the address that select a view. */
export function changesOf({ filters }: View): ConversationsSearch {
  return { mode: undefined, assignee: undefined, status: undefined, rating: undefined, ...filters }
}

/** The filters with a text field, in the order of the form. */
export const textFilters = ['assignee', 'tag', 'tool', 'error', 'model', 'visitor'] as const

/** The filters with a field for a whole number. */
export const numberFilters = ['version', 'min_tokens'] as const

/** Returns the filters that the user can remove one by one, except those of the current view. */
export function listApplied(search: ConversationsSearch): (keyof ConversationFilters)[] {
  const view = views.find((one) => isView(one, search))
  const names = Object.keys(filtersOf(search)) as (keyof ConversationFilters)[]
  return names.filter((name) => name !== 'q' && search[name] !== undefined && !(view && name in view.filters))
}
