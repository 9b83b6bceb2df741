/** Moves agents to the bin and back, and deletes agents that have been in the bin for 30 days. */
import { sql } from 'kysely'
import type { Database } from '../db/database.ts'
import { type Actor, recordAudit, serviceActor } from '../identity/audit.ts'
import { assertTenantLives, suspendAgentKeys } from '../identity/keys.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { findListPlace, type Page, type PageQuery, pageOf, toPage } from '../lib/page.ts'
import { type AgentDeps, assertFewerAgents, deleteWhere } from './agents.ts'
import { agentNotFound } from './cache.ts'
import type { Dependencies } from './dependencies.ts'
import { type AgentRow, binnedAgents, setBinned } from './store.ts'

export const BIN_SECONDS = 30 * 86_400
const PURGE_EVERY_MS = 600_000
const PURGE_BATCH = 50

export type BinnedRow = AgentRow & { readonly binned_at: number }
type BinDeps = AgentDeps & Pick<Dependencies, 'config'>

/**
 * Moves an agent to the bin. Clients then see it as deleted, and its keys are rejected.
 * @throws ServiceError `not_found`; `too_large` if the bin is full.
 */
export async function binAgent(
  deps: BinDeps,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<BinnedRow> {
  const now = unixSeconds(deps.clock)
  const row = await deps.db.transaction().execute(async (trx) => {
    await assertTenantLives({ db: trx }, tenantId)
    await assertRoom({ ...deps, db: trx }, tenantId)
    const binned = await setBinned(trx, tenantId, id, now)
    if (binned === undefined) throw agentNotFound()
    await suspendAgentKeys(trx, id, now)
    await recordChange({ ...deps, db: trx }, actor, 'agent.bin', binned)
    return { ...binned, binned_at: now }
  })
  deps.keys.invalidate()
  deps.agents.invalidate()
  return row
}

/** Applies the agent limit to the bin as well, because an agent in the bin still uses storage. */
async function assertRoom({ db, config }: Pick<BinDeps, 'db' | 'config'>, tenantId: string): Promise<void> {
  const { agents: limit } = config.limits
  if (limit === 0) return
  const { count } = await binnedAgents(db, tenantId)
    .clearSelect()
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) < limit) return
  throw new ServiceError(
    'too_large',
    `The bin already contains ${count} agents, and the limit is ${limit}. Permanently delete agents from the bin first.`,
    { code: 'agent_quota_exceeded' },
  )
}

/** Lists the agents in a tenant's bin. @throws ServiceError `invalid_value` if `after` is not in the bin. */
export async function listBinnedAgents(
  { db }: Pick<Dependencies, 'db'>,
  tenantId: string,
  { limit, after }: PageQuery,
): Promise<Page<BinnedRow>> {
  const rows = binnedAgents(db, tenantId)
  const by = sql.ref('binned_at')
  const place = await findListPlace(rows, by, after)
  const found = await pageOf(rows, { by, order: 'desc', after: place, limit: limit + 1 }).execute()
  return toPage(found as BinnedRow[], limit)
}

/**
 * Restores an agent with its keys and versions.
 * @throws ServiceError `not_found` if it is not in the bin; `too_large` if the agent limit is reached.
 */
export async function restoreBinnedAgent(
  deps: BinDeps,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    await assertTenantLives(within, tenantId)
    await assertFewerAgents(within, tenantId)
    const row = await setBinned(trx, tenantId, id, null)
    if (row === undefined) throw notInBin()
    await suspendAgentKeys(trx, id, null)
    await recordChange(within, actor, 'agent.restore', row)
  })
  deps.keys.invalidate()
  deps.agents.invalidate()
}

/** Deletes an agent in the bin. @throws ServiceError `not_found` if it is not in the bin. */
export async function deleteBinnedAgent(
  deps: AgentDeps & Pick<Dependencies, 'onAgentDeleted'>,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<void> {
  if (!(await deleteWhere(deps, actor, tenantId, id, { isBinned: true }))) throw notInBin()
}

function notInBin(): ServiceError {
  return new ServiceError('not_found', 'This agent is not in the bin.')
}

async function recordChange(
  deps: Pick<Dependencies, 'db' | 'random' | 'nextPosition'>,
  actor: Actor,
  action: 'agent.bin' | 'agent.restore',
  { id, parent_key_id: tenantId, name, version }: AgentRow,
): Promise<void> {
  const target = { kind: 'agent', id } as const
  await recordAudit(deps, actor, { action, target, tenantId, details: { name, version } })
}

/** Deletes the agents that were moved to the bin at least 30 days ago, and returns how many it deleted. */
export async function purgeBin(
  deps: AgentDeps & Pick<Dependencies, 'onAgentDeleted'>,
  signal: AbortSignal,
): Promise<number> {
  let purged = 0
  while (!signal.aborted) {
    const rows = await listOverdue(deps.db, unixSeconds(deps.clock) - BIN_SECONDS)
    for (const { id, parent_key_id: tenantId } of rows)
      if (await deleteWhere(deps, serviceActor, tenantId, id, { isBinned: true })) purged += 1
    if (rows.length < PURGE_BATCH) break
  }
  return purged
}

function listOverdue(db: Database, binnedBefore: number) {
  return db
    .selectFrom('agents')
    .select(['id', 'parent_key_id'])
    .where('binned_at', '<=', binnedBefore)
    .orderBy('binned_at')
    .limit(PURGE_BATCH)
    .execute()
}

/** Purges the bin now and every ten minutes; the returned function stops it and waits for the current run. */
export function startBinMaintenance(
  deps: Parameters<typeof purgeBin>[0] & Pick<Dependencies, 'log'>,
): () => Promise<void> {
  const stopping = new AbortController()
  let running = Promise.resolve()
  const purge = () => {
    running = running
      .then(async () => void (await purgeBin(deps, stopping.signal)))
      .catch((error) => deps.log.warn({ err: error }, 'failed to delete agents from the bin'))
  }
  purge()
  const timer = setInterval(purge, PURGE_EVERY_MS).unref()
  return () => {
    clearInterval(timer)
    stopping.abort()
    return running
  }
}
