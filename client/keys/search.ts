/** What the address of the keys says. */
import { oneOf, present, type RawSearch } from '../parts/search-values.ts'

export const keyTabs = ['parent', 'agent'] as const

export interface KeysSearch {
  readonly tab?: (typeof keyTabs)[number] | undefined
}

export function parseKeysSearch({ tab }: RawSearch): KeysSearch {
  return present({ tab: oneOf(tab, keyTabs) })
}
