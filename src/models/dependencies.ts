/** What this module needs of the rest of the service. */

import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { ModelPolicy } from './policy.ts'
import type { ListedAgent } from './schema.ts'

export interface Dependencies {
  readonly config: Config
  readonly log: Logger
  readonly agents: ListedAgents
}

/** The agents that are listed beside models. */
export interface ListedAgents {
  /** The tenant's agents, newest first; the same array as long as it is remembered. */
  list(tenantId: string): Promise<readonly ListedAgent[]>
  find(
    tenantId: string,
    id: string,
  ): Promise<{ readonly row: ListedAgent; readonly policy: ModelPolicy } | undefined>
}
