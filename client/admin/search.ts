/** What the address of the administration says: which tab, which page of its list, and what is filtered. */
import { dayOf, oneOf, present, type RawSearch, textOf } from '../lib/search-values.ts'
import { parseUsageSearch, type UsageSearch } from '../usage/search.ts'
import { actions } from './audit-labels.ts'

export const adminTabs = ['users', 'keys', 'usage', 'audit'] as const
export type AdminTab = (typeof adminTabs)[number]

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
