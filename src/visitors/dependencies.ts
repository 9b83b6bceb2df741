/** Lists the dependencies of the visitors module. */
import type { Dependencies as ChatDependencies } from '../chat/dependencies.ts'
import type { VisitorKey } from '../conversations/visible.ts'
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
  readonly visitorUploads: Uploads
}

/** The uploads of visitors, which the artifacts module stores. */
interface Uploads {
  reserve(
    owner: VisitorKey,
    file: { readonly filename: string; readonly sizeBytes: number },
    perHour: number,
  ): Promise<{ readonly id: string; readonly token: string; readonly expiresAt: number }>
  find(owner: VisitorKey, id: string): Promise<VisitorUpload | undefined>
  keep(ids: readonly string[]): Promise<void>
  move(from: VisitorKey, visitorId: string): Promise<void>
}

export interface VisitorUpload {
  readonly id: string
  readonly filename: string
  readonly sizeBytes: number
  /** Detected from the content. */
  readonly mediaType: string
}
