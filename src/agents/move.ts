/** Hands all agents of an owner to another one. */
import type { Database } from '../db/database.ts'
import { moveAgentKeys } from '../keys/claims.ts'
import { updateAgentOwners } from './store.ts'

/**
 * Hands a tenant's agents to another one, with their versions and their keys, which go on working; answers how many. Runs in the
 * caller's transaction. Decision: 10.
 */
export async function moveAgents(trx: Database, fromTenantId: string, toTenantId: string): Promise<number> {
  const moved = await updateAgentOwners(trx, fromTenantId, toTenantId)
  await moveAgentKeys(trx, fromTenantId, toTenantId)
  return moved
}
