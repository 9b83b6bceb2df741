/** What this module needs of the rest of the service. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'

export interface Dependencies {
  readonly config: Config
  readonly log: Logger
}
