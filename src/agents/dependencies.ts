/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import type { KeyDirectory } from '../keys/directory.ts'
import type { Sealer } from '../keys/seal.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import type { Toolbox } from '../tools/tool.ts'
import type { UsageBooks } from '../usage/books.ts'

export interface Dependencies {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly log: Logger
  readonly sealer: Sealer
  readonly keys: KeyDirectory
  readonly models: ModelCatalogue
  readonly tools: Toolbox
  readonly usage: UsageBooks
}
