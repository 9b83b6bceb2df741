/** What every tab of the page is given. */

import type { Outputs } from '../types.ts'
import type { AdminSearch } from './search.ts'

export interface TabProps {
  readonly search: AdminSearch
  readonly go: (search: AdminSearch) => void
}

export type AdminKey = Outputs['admin']['keys']['data'][number]
