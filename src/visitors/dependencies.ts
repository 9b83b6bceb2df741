/** Lists the dependencies of the visitors module. */
import type { Dependencies as ChatDependencies } from '../chat/dependencies.ts'
import type { Database } from '../db/database.ts'
import type { Erasures } from './erasures.ts'
import type { Followers } from './followers.ts'
import type { VisitorTokens } from './tokens.ts'

export interface Dependencies extends ChatDependencies {
  /** Contains the audit log. */
  readonly db: Database
  readonly nextPosition: () => number
  readonly visitorTokens: VisitorTokens
  readonly followers: Followers
  readonly erasures: Erasures
}
