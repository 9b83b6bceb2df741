/** What this module needs of the rest of the service. */

import type { AgentDirectory } from '../agents/directory.ts'
import type { Config } from '../config.ts'
import type { KeyDirectory } from '../keys/directory.ts'

export interface Dependencies {
  readonly config: Config
  readonly keys: KeyDirectory
  readonly agents: AgentDirectory
}
