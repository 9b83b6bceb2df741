/** Parses all pages' query strings; treats malformed values as absent. */
import { actions } from './admin/audit-labels.ts'

type RawSearch = Readonly<Record<string, unknown>>

/**
 * Returns non-empty text, or undefined. Converts numbers back to text, because the router parses digits as a
 * number.
 */
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
  /** Agent id, or `none` for calls without an agent. */
  readonly agent?: string | undefined
  readonly model?: string | undefined
  /** Lists individual calls; shows sums by default. */
  readonly view?: 'calls' | undefined
  /** Outcome of the counted or listed calls. */
  readonly status?: string | undefined
  /** Cursor of the last call on the previous page. */
  readonly after?: string | undefined
  /** Id of a request, whose calls are listed for any period. */
  readonly request?: string | undefined
}

export function parseUsageSearch(raw: RawSearch): UsageSearch {
  const { range, from, to, by, whose, key, agent, model, view, status, after } = raw
  const days = { from: dayOf(from), to: dayOf(to) }
  return present({
    range: oneOf(textOf(range), ranges),
    ...(days.from !== undefined && days.to !== undefined ? days : {}),
    by: oneOf(by, groupings),
    whose: oneOf(whose, ['all'] as const),
    key: textOf(key),
    agent: textOf(agent),
    model: textOf(model),
    view: oneOf(view, ['calls'] as const),
    status: textOf(status),
    request: textOf(raw.request)?.slice(0, 200),
    after: textOf(after),
  })
}

const orders = ['asc', 'desc'] as const

/** The search parameters that all lists share. */
interface RawList<Sort extends string> {
  readonly q?: string | undefined
  readonly sort?: Sort | undefined
  readonly order?: (typeof orders)[number] | undefined
  /** Id of the last item on the previous page. */
  readonly after?: string | undefined
}

function parseList<Sort extends string>(
  { q, sort, order, after }: RawSearch,
  sorts: readonly Sort[],
): RawList<Sort> {
  return present({
    q: textOf(q)?.slice(0, 200),
    sort: oneOf(sort, sorts),
    order: oneOf(order, orders),
    after: textOf(after),
  })
}

/** Returns the search parameters with the changes applied; undefined removes a parameter. */
export function changeSearch<T extends object>(
  search: T,
  changes: Readonly<Record<string, string | undefined>>,
): T {
  return present({ ...search, ...changes })
}

const agentSorts = ['created', 'name', 'updated'] as const
export type AgentsSearch = RawList<(typeof agentSorts)[number]>

export function parseAgentsSearch(raw: RawSearch): AgentsSearch {
  return parseList(raw, agentSorts)
}

export const adminTabs = ['users', 'keys', 'usage', 'audit'] as const
type AdminTab = (typeof adminTabs)[number]

const adminSorts = ['created', 'email', 'last_seen', 'name', 'last_used'] as const
export const keyStates = ['active', 'disabled', 'expired', 'revoked'] as const

export interface AdminSearch extends UsageSearch, RawList<(typeof adminSorts)[number]> {
  /** Users tab by default. */
  readonly tab?: AdminTab | undefined
  /** Id of the user whose keys are listed. */
  readonly user?: string | undefined
  readonly state?: (typeof keyStates)[number] | undefined
  readonly action?: (typeof actions)[number] | undefined
  readonly actor?: string | undefined
  readonly target?: string | undefined
}

export function parseAdminSearch(raw: RawSearch): AdminSearch {
  const { tab, user, state, action, actor, target, from, to } = raw
  return present({
    ...parseUsageSearch(raw),
    ...parseList(raw, adminSorts),
    tab: oneOf(tab, adminTabs),
    user: textOf(user),
    state: oneOf(state, keyStates),
    action: oneOf(action, actions),
    actor: textOf(actor),
    target: textOf(target),
    from: dayOf(from),
    to: dayOf(to),
  })
}

const fileSorts = ['created', 'name', 'size'] as const

interface FilesSearch extends RawList<(typeof fileSorts)[number]> {
  readonly purpose?: string | undefined
}

export function parseFilesSearch(raw: RawSearch): FilesSearch {
  return present({ ...parseList(raw, fileSorts), purpose: textOf(raw.purpose) })
}

export const channels = ['widget', 'api', 'console'] as const
export const modes = ['model', 'waiting', 'person'] as const
export const ratingReasons = ['incorrect', 'incomplete', 'off_topic', 'unsafe', 'too_slow', 'other'] as const
export const turnReasons = ['max_output_tokens', 'content_filter', 'interrupted', 'taken_over'] as const
export const turnStatuses = [
  'unanswered',
  'failed',
  'incomplete',
  'cancelled',
  'in_progress',
  'completed',
] as const

/** The filters of the conversations, which apply together. */
export interface ConversationFilters {
  readonly q?: string | undefined
  readonly agent?: string | undefined
  /** First and last day on which the conversations were created, in the browser's time zone. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly channel?: (typeof channels)[number] | undefined
  readonly mode?: (typeof modes)[number] | undefined
  /** The person who answers; `me` for the user. */
  readonly assignee?: string | undefined
  readonly status?: (typeof turnStatuses)[number] | undefined
  readonly rating?: 'up' | 'down' | undefined
  /** Why a turn was rated, or ended without a complete answer. */
  readonly reason?: (typeof ratingReasons)[number] | (typeof turnReasons)[number] | undefined
  readonly tag?: string | undefined
  /** Error code of a failed turn. */
  readonly error?: string | undefined
  readonly tool?: string | undefined
  readonly model?: string | undefined
  readonly version?: number | undefined
  readonly min_tokens?: number | undefined
  readonly visitor?: string | undefined
}

export interface ConversationsSearch extends ConversationFilters {
  /** Id of the turn that the page explains; the last one by default. */
  readonly turn?: string | undefined
  /** Id of the message that the page scrolls to and marks, because a search has found it. */
  readonly item?: string | undefined
}

const MAX_FILTER_LENGTH = 200

export function parseConversationsSearch(raw: RawSearch): ConversationsSearch {
  const text = (value: unknown) => textOf(value)?.slice(0, MAX_FILTER_LENGTH)
  const count = (value: unknown) =>
    Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : undefined
  return present({
    q: text(raw.q),
    agent: text(raw.agent),
    from: dayOf(raw.from),
    to: dayOf(raw.to),
    channel: oneOf(raw.channel, channels),
    mode: oneOf(raw.mode, modes),
    assignee: text(raw.assignee),
    status: oneOf(raw.status, turnStatuses),
    rating: oneOf(raw.rating, ['up', 'down'] as const),
    reason: oneOf(raw.reason, [...ratingReasons, ...turnReasons]),
    tag: text(raw.tag),
    error: text(raw.error),
    tool: text(raw.tool),
    model: text(raw.model),
    version: count(raw.version),
    min_tokens: count(raw.min_tokens),
    visitor: text(raw.visitor),
    turn: text(raw.turn),
    item: text(raw.item),
  })
}

export interface VisitorsSearch extends RawList<'seen'> {
  /** Id of an agent that the visitors have used. */
  readonly agent?: string | undefined
}

export function parseVisitorsSearch(raw: RawSearch): VisitorsSearch {
  return present({ ...parseList(raw, ['seen'] as const), agent: textOf(raw.agent) })
}

interface VisitorSearch {
  /** Id of the erasure whose progress or receipt is shown. */
  readonly erasure?: string | undefined
}

export function parseVisitorSearch(raw: RawSearch): VisitorSearch {
  return present({ erasure: textOf(raw.erasure) })
}

interface WebhooksSearch {
  /** True while the dialog that creates a webhook is open. */
  readonly add?: true | undefined
}

export function parseWebhooksSearch({ add }: RawSearch): WebhooksSearch {
  return add === true ? { add } : {}
}

interface WebhookSearch {
  /** Id of the last delivery on the previous page. */
  readonly after?: string | undefined
}

export function parseWebhookSearch(raw: RawSearch): WebhookSearch {
  return present({ after: textOf(raw.after) })
}

export const keyTabs = ['parent', 'agent'] as const

export interface KeysSearch extends RawList<'created' | 'name' | 'last_used'> {
  readonly tab?: (typeof keyTabs)[number] | undefined
  /** Id of the agent whose key is shown. */
  readonly agent?: string | undefined
  /** True while the dialog that creates a parent key is open. */
  readonly add?: true | undefined
}

export function parseKeysSearch(raw: RawSearch): KeysSearch {
  return present({
    ...parseList(raw, ['created', 'name', 'last_used'] as const),
    tab: oneOf(raw.tab, keyTabs),
    agent: textOf(raw.agent),
    add: raw.add === true ? true : undefined,
  })
}

export const artifactStates = ['uploading', 'processing', 'ready'] as const
export const artifactKinds = ['video', 'project', 'captions', 'thumbnail', 'attachment'] as const

export interface UploadsSearch extends RawList<(typeof fileSorts)[number]> {
  readonly kind?: (typeof artifactKinds)[number] | undefined
  readonly state?: (typeof artifactStates)[number] | undefined
  /** Id of the artifact shown in the dialog. */
  readonly artifact?: string | undefined
}

export function parseUploadsSearch(raw: RawSearch): UploadsSearch {
  return present({
    ...parseList(raw, fileSorts),
    kind: oneOf(raw.kind, artifactKinds),
    state: oneOf(raw.state, artifactStates),
    artifact: textOf(raw.artifact),
  })
}

interface BudgetsSearch {
  /** True while the dialog that creates a budget is open. */
  readonly add?: true | undefined
}

export function parseBudgetsSearch({ add }: RawSearch): BudgetsSearch {
  return add === true ? { add } : {}
}

export const priceSources = ['none', 'override', 'config', 'shipped', 'free'] as const

export interface PricesSearch extends RawList<'id'> {
  readonly source?: (typeof priceSources)[number] | undefined
}

export function parsePricesSearch(raw: RawSearch): PricesSearch {
  return present({ ...parseList(raw, ['id'] as const), source: oneOf(raw.source, priceSources) })
}

interface BinSearch {
  readonly after?: string | undefined
  /** Absent for the agents. */
  readonly tab?: 'uploads' | undefined
}

export function parseBinSearch({ after, tab }: RawSearch): BinSearch {
  return present({ after: textOf(after), tab: oneOf(tab, ['uploads'] as const) })
}
