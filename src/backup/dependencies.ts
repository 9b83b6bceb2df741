/** What this module needs of the rest of the service. */
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import type { Clock } from '../lib/clock.ts'

export interface Dependencies {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
}
