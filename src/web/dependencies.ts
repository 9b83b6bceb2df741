/** What this module needs of the rest of the service. */
import type { AgentDirectory } from '../agents/cache.ts'
import type { Config } from '../config/config.ts'
import type { KeyDirectory } from '../identity/authenticate.ts'

export interface Dependencies {
  readonly config: Config
  readonly keys: KeyDirectory
  readonly agents: AgentDirectory
}
