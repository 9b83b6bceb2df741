/** Hands artifacts over when their owner claims another parent key. */
import type { Database } from '../db/database.ts'
import { updateArtifactOwners } from './store.ts'

/**
 * Hands a tenant's artifacts to another one, uploads under way and reserved ids included; answers how many. Tokens of theirs end
 * with the key they were made with. Runs in the caller's transaction. Decision: 10.
 */
export function moveArtifacts(trx: Database, fromTenantId: string, toTenantId: string): Promise<number> {
  return updateArtifactOwners(trx, fromTenantId, toTenantId)
}
