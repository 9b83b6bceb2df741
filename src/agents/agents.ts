/** Creates, replaces, restores and deletes a tenant's agents, and rotates their keys. */

import { deleteBudgetsOfAgent, moveBudgets } from '../budgets/budget-store.ts'
import { addDefaultBudgets } from '../budgets/default-budget.ts'
import type { Database } from '../db/database.ts'
import { type Actor, type AuditDeps, listTargetsWith, recordAudit } from '../identity/audit.ts'
import { moveAgentKeys } from '../identity/key-claims.ts'
import { assertTenantLives, insertSecret, type Rotation, replaceSecret } from '../identity/keys.ts'
import { mintKey } from '../lib/api-key.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { sumSpent } from '../usage/spent-before.ts'
import { type Agent, type AgentDirectory, agentNotFound } from './cache.ts'
import { type DefinitionFormat, parseDefinition } from './definition.ts'
import { toSeconds } from './definition-parts.ts'
import type { Dependencies } from './dependencies.ts'
import { type AgentRow, type AgentVersionRow, findAgent, selectVersions, updateUnversioned } from './store.ts'

export type AgentDeps = Pick<Dependencies, 'db' | 'clock' | 'random' | 'nextPosition' | 'sealer' | 'keys'> & {
  readonly agents: AgentDirectory
}

/** Maximum number of earlier versions per agent; older ones are deleted. */
const MAX_VERSIONS = 100

export interface DefinitionText {
  readonly yaml: string
  readonly format: DefinitionFormat
}

/** A definition to store as a new version. */
export interface NewVersion extends DefinitionText {
  /** At most 200 characters. */
  readonly note?: string | undefined
}

/**
 * Creates an agent and its key in one transaction.
 * @throws ServiceError `invalid_value`; `too_large` if the definition is too large or the agent limit is
 * reached; `invalid_api_key` if the parent key was just revoked.
 */
export async function createAgent(
  deps: AgentDeps & Pick<Dependencies, 'config'>,
  actor: Actor,
  tenantId: string,
  { yaml, format, note }: NewVersion,
): Promise<Agent> {
  const { name } = parseDefinition(yaml, format)
  const id = newId('agent-', 20, deps.random)
  const key = mintKey('agent', deps.random)
  const now = unixSeconds(deps.clock)
  const row: AgentRow = {
    id,
    parent_key_id: tenantId,
    version: 1,
    name,
    source: yaml,
    format,
    key_id: key.publicId,
    key_sealed: deps.sealer.seal(key.text, id),
    key_hint: key.hint,
    position: deps.nextPosition(),
    created_at: now,
    updated_at: now,
    model_policy: null,
    model_policy_updated_at: null,
    binned_at: null,
    note: note ?? null,
  }
  await deps.db.transaction().execute(async (trx) => {
    // Locks the tenant, so that concurrent calls cannot exceed the agent limit.
    await assertTenantLives({ db: trx }, tenantId)
    await assertFewerAgents({ ...deps, db: trx }, tenantId)
    await trx.insertInto('agents').values(row).execute()
    await insertSecret(trx, { tenantId, agentId: id }, key, now)
    const within = { ...deps, db: trx }
    await recordWrite(within, actor, 'agent.create', row)
    await addDefaultBudgets({ ...within, usage: { sumSpent } }, actor, tenantId, [id])
  })
  deps.agents.invalidate()
  return deps.agents.prepare(row)
}

export async function assertFewerAgents(
  { db, config }: Pick<Dependencies, 'db' | 'config'>,
  tenantId: string,
): Promise<void> {
  const { agents: limit } = config.limits
  if (limit === 0) return
  const count = (await countAgents({ db }, [tenantId])).get(tenantId) ?? 0
  if (count < limit) return
  throw new ServiceError(
    'too_large',
    `This parent key already has ${count} agents, and the limit is ${limit}. Delete agents, or raise PARLEY_MAX_AGENTS.`,
    { code: 'agent_quota_exceeded' },
  )
}

export async function countAgents(
  { db }: Pick<Dependencies, 'db'>,
  tenantIds: readonly string[],
): Promise<Map<string, number>> {
  if (tenantIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('agents')
    .select(({ fn }) => ['parent_key_id', fn.countAll<number>().as('count')])
    .where('parent_key_id', 'in', tenantIds)
    .where('binned_at', 'is', null)
    .groupBy('parent_key_id')
    .execute()
  return new Map(rows.map(({ parent_key_id, count }) => [parent_key_id, Number(count)]))
}

/** @throws ServiceError `not_found`, including for another tenant's agent. */
export async function getAgent(
  deps: Pick<Dependencies, 'db'> & { readonly agents: AgentDirectory },
  tenantId: string,
  id: string,
): Promise<Agent> {
  return deps.agents.prepare(await getRow(deps, tenantId, id))
}

/**
 * Replaces the definition and stores the previous one as a version.
 * @throws ServiceError `not_found`, `invalid_value`, `too_large`; `precondition_failed` if `ifMatch` does not
 * match.
 */
export async function replaceAgent(
  deps: AgentDeps,
  actor: Actor,
  tenantId: string,
  id: string,
  text: NewVersion,
  {
    ifMatch,
    restoredVersion,
  }: { readonly ifMatch?: string | undefined; readonly restoredVersion?: number } = {},
): Promise<Agent> {
  const { name } = parseDefinition(text.yaml, text.format)
  let written: AgentRow | undefined
  // Retries after a conflicting concurrent write; without `ifMatch`, the last write wins.
  while (written === undefined) {
    const row = await getRow(deps, tenantId, id)
    if (ifMatch !== undefined && !matchesVersion(ifMatch, row.version))
      throw new ServiceError(
        'precondition_failed',
        `If-Match: the agent has changed and is now at version ${row.version}. Get the agent again before you update it.`,
      )
    const definition = { name, source: text.yaml, format: text.format, note: text.note ?? null }
    written = await writeVersion(deps, actor, row, definition, restoredVersion)
  }
  deps.agents.invalidate()
  return deps.agents.prepare(written)
}

/** Deletes an agent that is not in the bin. @throws ServiceError `not_found` */
export async function deleteAgent(
  deps: AgentDeps & Pick<Dependencies, 'onAgentDeleted'>,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<void> {
  if (!(await deleteWhere(deps, actor, tenantId, id, { isBinned: false }))) throw agentNotFound()
}

/**
 * Deletes an agent and everything that belongs to it. `isBinned` selects agents in the bin instead of those
 * outside it. Returns false if there is no such agent.
 */
export async function deleteWhere(
  deps: AgentDeps & Pick<Dependencies, 'onAgentDeleted'>,
  actor: Actor,
  tenantId: string,
  id: string,
  { isBinned }: { readonly isBinned: boolean },
): Promise<boolean> {
  const isDeleted = await deps.db.transaction().execute(async (trx) => {
    // Foreign keys cascade to the agent's credentials and versions.
    const row = await trx
      .deleteFrom('agents')
      .where('id', '=', id)
      .where('parent_key_id', '=', tenantId)
      .where('binned_at', isBinned ? 'is not' : 'is', null)
      .returningAll()
      .executeTakeFirst()
    if (row === undefined) return false
    await deleteBudgetsOfAgent(trx, id)
    const target = { kind: 'agent', id } as const
    const details = { name: row.name, version: row.version }
    await recordAudit({ ...deps, db: trx }, actor, { action: 'agent.delete', target, tenantId, details })
    return true
  })
  if (!isDeleted) return false
  deps.keys.invalidate()
  deps.agents.invalidate()
  await deps.onAgentDeleted(tenantId, id)
  return true
}

/** Stores an earlier version's text as a new version. @throws ServiceError `not_found` */
export async function restoreVersion(
  deps: AgentDeps,
  actor: Actor,
  tenantId: string,
  id: string,
  version: number,
): Promise<Agent> {
  const row = await getRow(deps, tenantId, id)
  const stored = selectVersions(deps.db, tenantId, id).where('version', '=', version)
  const earlier = row.version === version ? toVersion(row) : await stored.executeTakeFirst()
  if (earlier === undefined) throw new ServiceError('not_found', `This agent has no version ${version}.`)
  const text = { yaml: earlier.source, format: earlier.format }
  return replaceAgent(deps, actor, tenantId, id, text, { restoredVersion: version })
}

/**
 * Replaces the agent's key but not its public id. The previous key stays valid for `overlapSeconds`.
 * @throws ServiceError `not_found`
 */
export async function rotateAgentKey(
  deps: AgentDeps,
  actor: Actor,
  tenantId: string,
  id: string,
  overlapSeconds: number,
): Promise<Rotation> {
  const rotation = await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    const row = await getRow(within, tenantId, id)
    const key = mintKey('agent', deps.random, row.key_id)
    const changes = { key_sealed: deps.sealer.seal(key.text, id), key_hint: key.hint }
    if (!(await updateUnversioned(trx, tenantId, id, changes))) throw agentNotFound()
    const details = { key_hint: key.hint, overlap_seconds: overlapSeconds }
    const target = { kind: 'agent', id } as const
    await recordAudit(within, actor, { action: 'agent_key.rotate', target, tenantId, details })
    return replaceSecret(within, { tenantId, agentId: id }, key, overlapSeconds)
  })
  deps.keys.invalidate()
  deps.agents.invalidate()
  return rotation
}

export function openAgentKey(deps: Pick<Dependencies, 'sealer'>, { row }: Agent): string {
  return deps.sealer.open(row.key_sealed, row.id)
}

export function entityTagOf({ row }: Agent): string {
  return `"${row.version}"`
}

export async function getRow(
  deps: Pick<Dependencies, 'db'>,
  tenantId: string,
  id: string,
): Promise<AgentRow> {
  const row = await findAgent(deps.db, tenantId, id)
  if (row === undefined) throw agentNotFound()
  return row
}

/**
 * Stores the definition as a new version and `row` as an earlier version, and deletes versions beyond the
 * limit. Returns undefined if `row` is no longer current.
 */
async function writeVersion(
  deps: AuditDeps & Pick<Dependencies, 'clock'>,
  actor: Actor,
  row: AgentRow,
  definition: Pick<AgentRow, 'name' | 'source' | 'format' | 'note'>,
  restoredVersion: number | undefined,
): Promise<AgentRow | undefined> {
  const changes = { ...definition, version: row.version + 1, updated_at: unixSeconds(deps.clock) }
  return deps.db.transaction().execute(async (trx) => {
    const written = await trx
      .updateTable('agents')
      .set(changes)
      .where('id', '=', row.id)
      .where('parent_key_id', '=', row.parent_key_id)
      .where('version', '=', row.version)
      .where('binned_at', 'is', null)
      .returningAll()
      .executeTakeFirst()
    if (written === undefined) return undefined
    await trx.insertInto('agent_versions').values(toVersion(row)).execute()
    await trx
      .deleteFrom('agent_versions')
      .where('agent_id', '=', row.id)
      .where('version', '<=', row.version - MAX_VERSIONS)
      .execute()
    const details = restoredVersion === undefined ? {} : { restored_version: restoredVersion }
    await recordWrite({ ...deps, db: trx }, actor, 'agent.update', written, details)
    return written
  })
}

/** Omits the definition's text and the note, because the audit log's entries cannot be deleted. */
async function recordWrite(
  deps: AuditDeps,
  actor: Actor,
  action: 'agent.create' | 'agent.update',
  { id, parent_key_id: tenantId, name, version }: AgentRow,
  more: { readonly restored_version?: number } = {},
): Promise<void> {
  const target = { kind: 'agent', id } as const
  await recordAudit(deps, actor, { action, target, tenantId, details: { name, version, ...more } })
}

/** Accepts `*` or a list of strong entity tags (RFC 9110, section 13.1.1). */
function matchesVersion(ifMatch: string, version: number): boolean {
  return ifMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim() === `"${version}"`)
}

export function toVersion(row: AgentRow): AgentVersionRow {
  const { id, version, name, source, format, note, updated_at } = row
  return { agent_id: id, version, name, source, format, note, created_at: updated_at }
}

/**
 * Moves all of a tenant's agents, with their versions, keys and budgets, to another tenant, and returns their
 * ids. Requires a transaction.
 */
export async function moveAgents(trx: Database, fromTenantId: string, toTenantId: string): Promise<string[]> {
  const moved = await trx
    .updateTable('agents')
    .set({ parent_key_id: toTenantId })
    .where('parent_key_id', '=', fromTenantId)
    .returning('id')
    .execute()
  await moveAgentKeys(trx, fromTenantId, toTenantId)
  await moveBudgets(trx, fromTenantId, toTenantId)
  return moved.map(({ id }) => id)
}

/** An agent's tenant and the retention period of its conversations. */
export interface AgentRetention {
  readonly tenantId: string
  /** Undefined if the agent stores no conversations, or if its definition is invalid. */
  readonly keepSeconds: number | undefined
}

/**
 * Maps each existing agent in `ids` to its retention, and each agent whose deletion is in the audit log to
 * `deleted`.
 */
export async function listRetention(
  { db }: Pick<Dependencies, 'db'>,
  ids: readonly string[],
): Promise<Map<string, AgentRetention | 'deleted'>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('agents')
    .select(['id', 'parent_key_id', 'source', 'format'])
    .where('id', 'in', ids)
    .execute()
  const found = new Map<string, AgentRetention | 'deleted'>(
    rows.map(({ id, parent_key_id: tenantId, source, format }) => {
      return [id, { tenantId, keepSeconds: findKeepSeconds(source, format) }]
    }),
  )
  const missing = ids.filter((id) => !found.has(id))
  for (const id of await listTargetsWith({ db }, 'agent.delete', missing)) found.set(id, 'deleted')
  return found
}

/**
 * Tolerates an invalid definition, which an earlier release may have accepted. Otherwise, one such agent
 * would stop the deletion of expired data.
 */
function findKeepSeconds(source: string, format: DefinitionFormat): number | undefined {
  try {
    const { conversations } = parseDefinition(source, format)
    return conversations && toSeconds(conversations.keep)
  } catch (thrown) {
    if (thrown instanceof ServiceError) return undefined
    throw thrown
  }
}
