/** What this module needs of the rest of the service. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Converter } from '../conversion/conversion.ts'
import type { Database } from '../db/database.ts'
import type { KeyDirectory } from '../identity/authenticate.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/ids.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { Replicas } from '../replicas/replicas.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { OnUploadComplete } from './metadata.ts'

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
  readonly shared: Replicas
  readonly converter: Converter
  readonly onUploadComplete: OnUploadComplete | undefined
}
