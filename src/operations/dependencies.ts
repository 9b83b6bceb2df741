/** Declares the operations module's dependencies. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Clock } from '../lib/clock.ts'
import type { Replicas } from '../replicas/replicas.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { AddressSharing } from './address-sharing.ts'
import type { AgentCaller, Authenticator } from './operation.ts'

export interface Dependencies {
  readonly config: Config
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly shared: Pick<Replicas, 'limiter'>
  readonly authenticator: Authenticator
  readonly addressSharing: AddressSharing
  /** Returns the maximum number of bytes that an agent's attachments add to a request with its key. */
  readonly attachmentBytes: (caller: AgentCaller) => number | Promise<number>
  /**
   * Returns these dependencies with the database connections of one area of the API. Undefined if all areas
   * share one connection.
   */
  readonly inArea: ((area: string) => Dependencies) | undefined
}
