/** Lists the dependencies of the visitors module. */
import type { Dependencies as ChatDependencies } from '../chat/dependencies.ts'
import type { Database } from '../db/database.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { Erasures } from './erasures.ts'
import type { Followers } from './followers.ts'
import type { KeySets } from './identity/key-sets.ts'

export interface Dependencies extends ChatDependencies {
  /** Contains the audit log. */
  readonly db: Database
  readonly nextPosition: () => number
  readonly sealer: Sealer
  /** The keys that verify the JWTs of visitors. */
  readonly keySets: KeySets
  readonly followers: Followers
  readonly erasures: Erasures
}
