/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { Converter } from '../conversion/conversion.ts'
import type { Database } from '../db/database.ts'
import type { KeyDirectory } from '../keys/directory.ts'
import type { Sealer } from '../keys/seal.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Tracing } from '../observability/tracing.ts'
import type { SharedState } from '../shared-state/shared-state.ts'
import type { OnUploadComplete } from '../tools/host.ts'

export interface Dependencies {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly log: Logger
  readonly metrics: Metrics
  readonly tracing: Tracing | undefined
  readonly sealer: Sealer
  readonly keys: KeyDirectory
  readonly shared: SharedState
  readonly converter: Converter
  readonly onUploadComplete: OnUploadComplete | undefined
}
