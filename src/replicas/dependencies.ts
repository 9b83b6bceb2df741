/** Declares the replicas module's dependencies. */
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'

export interface Dependencies {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}
