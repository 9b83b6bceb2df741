/** What the catalogue needs from other modules. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'

export interface Dependencies {
  readonly config: Config
  readonly log: Logger
}
