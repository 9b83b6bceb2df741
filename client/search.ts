/** Parses all pages' query strings; treats malformed values as absent. */
import { actions } from './admin/audit-labels.ts'

type RawSearch = Readonly<Record<string, unknown>>

/** Reads text; converts numbers back, because the router parses digits as a number. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

function oneOf<T extends string>(value: unknown, choices: readonly T[]): T | undefined {
  return choices.find((choice) => choice === value)
}

/** Reads a valid day, such as `2026-01-31`. */
function dayOf(value: unknown): string | undefined {
  const text = textOf(value)
  const isDay = text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
  return isDay ? text : undefined
}

/** Omits absent values to keep the address short. */
function present<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T
}

export const groupings = ['day', 'agent', 'model', 'key'] as const
export type Grouping = (typeof groupings)[number]

export const ranges = ['7', '30', '90', '365'] as const

export interface UsageSearch {
  /** Number of days up to today; 30 by default. */
  readonly range?: (typeof ranges)[number] | undefined
  /** First day of a custom period, which replaces `range`. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Grouping; by day by default. */
  readonly by?: Grouping | undefined
  /** Selects the calls of all keys; for administrators. */
  readonly whose?: 'all' | undefined
  /** Selects the calls of one parent key; for administrators. */
  readonly key?: string | undefined
}

export function parseUsageSearch({ range, from, to, by, whose, key }: RawSearch): UsageSearch {
  const days = { from: dayOf(from), to: dayOf(to) }
  return present({
    range: oneOf(textOf(range), ranges),
    ...(days.from !== undefined && days.to !== undefined ? days : {}),
    by: oneOf(by, groupings),
    whose: oneOf(whose, ['all'] as const),
    key: textOf(key),
  })
}

export const adminTabs = ['users', 'keys', 'usage', 'audit'] as const
type AdminTab = (typeof adminTabs)[number]

export interface AdminSearch extends UsageSearch {
  /** Users tab by default. */
  readonly tab?: AdminTab | undefined
  /** Id of the last item on the previous page. */
  readonly after?: string | undefined
  readonly action?: (typeof actions)[number] | undefined
  readonly actor?: string | undefined
  readonly target?: string | undefined
}

export function parseAdminSearch(raw: RawSearch): AdminSearch {
  const { tab, after, action, actor, target, from, to } = raw
  return present({
    ...parseUsageSearch(raw),
    tab: oneOf(tab, adminTabs),
    after: textOf(after),
    action: oneOf(action, actions),
    actor: textOf(actor),
    target: textOf(target),
    from: dayOf(from),
    to: dayOf(to),
  })
}

interface FilesSearch {
  /** Id of the last file on the previous page. */
  readonly after?: string | undefined
}

export function parseFilesSearch({ after }: RawSearch): FilesSearch {
  return present({ after: textOf(after) })
}

interface ConversationsSearch {
  /** Id of the agent whose conversations are listed. */
  readonly agent?: string | undefined
}

export function parseConversationsSearch({ agent }: RawSearch): ConversationsSearch {
  return present({ agent: textOf(agent) })
}

export const keyTabs = ['parent', 'agent'] as const

interface KeysSearch {
  readonly tab?: (typeof keyTabs)[number] | undefined
  /** Id of the agent whose key is shown. */
  readonly agent?: string | undefined
}

export function parseKeysSearch({ tab, agent }: RawSearch): KeysSearch {
  return present({ tab: oneOf(tab, keyTabs), agent: textOf(agent) })
}

interface UploadsSearch {
  /** Id of the last artifact on the previous page. */
  readonly after?: string | undefined
  /** Id of the artifact shown in the dialog. */
  readonly artifact?: string | undefined
}

export function parseUploadsSearch({ after, artifact }: RawSearch): UploadsSearch {
  return present({ after: textOf(after), artifact: textOf(artifact) })
}
