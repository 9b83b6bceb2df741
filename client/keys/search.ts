/** What the address of the keys says. */
import { oneOf, present, type RawSearch, textOf } from '../lib/search-values.ts'

export const keyTabs = ['parent', 'agent'] as const

export interface KeysSearch {
  readonly tab?: (typeof keyTabs)[number] | undefined
  /** The agent whose key is looked for. */
  readonly agent?: string | undefined
}

export function parseKeysSearch({ tab, agent }: RawSearch): KeysSearch {
  return present({ tab: oneOf(tab, keyTabs), agent: textOf(agent) })
}
