/** What this module needs of the rest of the service. */
import type { Database } from '../db/database.ts'
import type { Random } from '../lib/random.ts'

export interface Dependencies {
  readonly db: Database
  readonly random: Random
  readonly nextPosition: () => number
}
