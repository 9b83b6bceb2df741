/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { AgentDirectory } from '../agents/directory.ts'
import type { Config } from '../config.ts'
import type { ModelCatalogue } from './catalogue.ts'

export interface Dependencies {
  readonly config: Config
  readonly log: Logger
  readonly agents: AgentDirectory
  readonly models: ModelCatalogue
}
