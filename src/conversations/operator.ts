/**
 * Lists, exports, deletes and erases the conversations of all tenants, for the operator's commands and
 * erasures.
 */
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { type ConversationDatabase, createConversationStorage } from '../db/open.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import type { Dependencies } from './dependencies.ts'
import { listDataBlobs } from './inline-data/data-rows.ts'
import type { ItemData } from './inline-data/item-data.ts'
import { deleteNow } from './retention/rows.ts'
import type { ConversationRow } from './store.ts'
import { prepareDeletion } from './webhooks/events.ts'

export { type ConversationLine, exportTurns, readLastLines } from './admin/export.ts'
export { type Inspected, inspectConversations, listUnknownAgents } from './admin/inspect.ts'
export { type ConversationFilter, findAnyConversation, listAnyConversations } from './admin/list.ts'
export { readFilter } from './admin/log.ts'
export { ItemData } from './inline-data/item-data.ts'
export { renderConversations } from './requests.ts'
export {
  claimErasure,
  deleteVisitor,
  type ErasureCounts,
  type ErasureRow,
  eraseConversations,
  findErasure,
  findErasureOf,
  finishErasure,
  insertErasure,
  isErased,
  listConversationIds,
  listUnfinishedErasures,
  noCounts,
} from './retention/erasure.ts'
export { countConversations, findVisitor, listVisitorRows, type OwnedVisitor } from './retention/visitors.ts'
export { rebuildIndex } from './search/index-rows.ts'
export type { ConversationRow } from './store.ts'
export { prepareDeletion } from './webhooks/events.ts'

/**
 * Deletes a conversation. If a server runs one of its turns, the server cancels the turn when it next stores
 * events.
 */
export async function deleteAnyConversation(
  deps: AuditDeps & Pick<Dependencies, 'webhooks' | 'forgetSpending'> & { readonly data: ItemData },
  actor: Actor,
  { write, scrub }: ConversationDatabase,
  { id, tenant: tenantId, agent_id: agentId, turns }: ConversationRow,
): Promise<void> {
  // Records the deletion before it happens, because with SQLite the audit log is in another file and cannot
  // share a transaction with it.
  await recordAudit(deps, actor, {
    action: 'conversation.delete',
    target: { kind: 'conversation', id },
    tenantId,
    details: { agent_id: agentId || null, turns },
  })
  await deps.forgetSpending('conversation', [id])
  await deleteNow(write, [id], await prepareDeletion(deps.webhooks, 'deleted'))
  await deps.data.dropDeleted()
  await scrub()
}

/** Returns the blobs in `names` that belong to conversation items. */
export async function findItemBlobs(
  { databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>,
  db: Database,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const storage = createConversationStorage({ db, databaseUrl }, dataDir)
  try {
    const opened = await storage.find()
    return opened === undefined ? new Set() : await listDataBlobs(opened.read, names)
  } finally {
    await storage.close()
  }
}
