/** What this module needs of the rest of the service. */
import type { Logger } from 'pino'

export interface Dependencies {
  readonly log: Logger
}
