/** The query strings of all pages; a malformed value counts as absent. */
import { actions } from './admin/audit-labels.ts'

type RawSearch = Readonly<Record<string, unknown>>

/** Text; digits alone come as a number. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** One of these. */
function oneOf<T extends string>(value: unknown, choices: readonly T[]): T | undefined {
  return choices.find((choice) => choice === value)
}

/** A day (`2026-01-31`) that exists. */
function dayOf(value: unknown): string | undefined {
  const text = textOf(value)
  const isDay = text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
  return isDay ? text : undefined
}

/** Without what is absent, so that the address stays short. */
function present<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T
}

export const groupings = ['day', 'agent', 'model', 'key'] as const
export type Grouping = (typeof groupings)[number]

export const ranges = ['7', '30', '90', '365'] as const

export interface UsageSearch {
  /** The last so many days; 30 without it. */
  readonly range?: (typeof ranges)[number] | undefined
  /** Days of one's own choice, in the place of a range. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** By day without it. */
  readonly by?: Grouping | undefined
  /** Everybody's calls, for administrators. */
  readonly whose?: 'all' | undefined
  /** Only this parent key's, for administrators. */
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
  /** The users without it. */
  readonly tab?: AdminTab | undefined
  /** The entry after which the page of the list begins. */
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
  /** The file after which the page of the list begins. */
  readonly after?: string | undefined
}

export function parseFilesSearch({ after }: RawSearch): FilesSearch {
  return present({ after: textOf(after) })
}

export const keyTabs = ['parent', 'agent'] as const

interface KeysSearch {
  readonly tab?: (typeof keyTabs)[number] | undefined
  /** The agent whose key is looked for. */
  readonly agent?: string | undefined
}

export function parseKeysSearch({ tab, agent }: RawSearch): KeysSearch {
  return present({ tab: oneOf(tab, keyTabs), agent: textOf(agent) })
}

interface UploadsSearch {
  /** The artifact after which the page of the list begins. */
  readonly after?: string | undefined
  /** The artifact that is looked at. */
  readonly artifact?: string | undefined
}

export function parseUploadsSearch({ after, artifact }: RawSearch): UploadsSearch {
  return present({ after: textOf(after), artifact: textOf(artifact) })
}
