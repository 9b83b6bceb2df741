/** Moves finished uploads to the bin and back, and deletes uploads that have been in it for 30 days. */
import { sql } from 'kysely'
import { type Actor, recordAudit, serviceActor } from '../../identity/audit.ts'
import { assertTenantLives } from '../../identity/keys.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { findListPlace, type Page, type PageQuery, pageOf, toPage } from '../../lib/page.ts'
import { artifactNotFound } from '../access.ts'
import { removeUpload } from '../artifacts.ts'
import type { Dependencies } from '../dependencies.ts'
import { findArtifact, isUpload, type UploadRow } from '../store.ts'
import { type BinnedUpload, binnedArtifacts, insertIntoBin, listOverdue, removeFromBin } from './store.ts'

export const BIN_SECONDS = 30 * 86_400
const PURGE_BATCH = 50

type BinDeps = Parameters<typeof removeUpload>[0]

/**
 * Moves a finished upload to the bin. Clients then see it as deleted, but its bytes still count toward the
 * quota.
 * @throws ServiceError `not_found`; `conflict` if the upload is not ready.
 */
export async function binArtifact(
  deps: BinDeps,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<BinnedUpload> {
  const now = unixSeconds(deps.clock)
  const row = await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    await assertTenantLives(within, tenantId)
    const binned = await insertIntoBin(trx, tenantId, id, now)
    if (binned === undefined) throw await whyNotBinned(within, tenantId, id, now)
    await recordChange(within, actor, 'artifact.bin', binned)
    return binned
  })
  deps.artifacts.changes.publish(id)
  return row
}

async function whyNotBinned(
  { db }: Pick<BinDeps, 'db'>,
  tenantId: string,
  id: string,
  now: number,
): Promise<ServiceError> {
  const row = await findArtifact(db, tenantId, id, now)
  if (row === undefined || !isUpload(row)) return artifactNotFound()
  return new ServiceError(
    'conflict',
    `Only ready artifacts can be moved to the bin (this one is ${row.state}); delete it instead.`,
  )
}

/** Lists the uploads in a tenant's bin. @throws ServiceError `invalid_value` if `after` is not in the bin */
export async function listBinnedArtifacts(
  { db }: Pick<Dependencies, 'db'>,
  tenantId: string,
  { limit, after }: PageQuery,
): Promise<Page<BinnedUpload>> {
  const rows = binnedArtifacts(db, tenantId)
  const by = sql.ref('binned_at')
  const place = await findListPlace(rows, by, after)
  const found = await pageOf(rows, { by, order: 'desc', after: place, limit: limit + 1 }).execute()
  return toPage(found as BinnedUpload[], limit)
}

/** @throws ServiceError `not_found` if the upload is not in the bin */
export async function restoreBinnedArtifact(
  deps: BinDeps,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const within = { ...deps, db: trx }
    await assertTenantLives(within, tenantId)
    const row = await removeFromBin(trx, tenantId, id)
    if (row === undefined) throw notInBin()
    await recordChange(within, actor, 'artifact.restore', row)
  })
  deps.artifacts.changes.publish(id)
}

/** Permanently deletes a binned upload and its bytes. @throws ServiceError `not_found` if it is not binned */
export async function deleteBinnedArtifact(
  deps: BinDeps,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<void> {
  const row = await binnedArtifacts(deps.db, tenantId).where('id', '=', id).executeTakeFirst()
  if (row === undefined || !(await deleteRow(deps, actor, row as UploadRow))) throw notInBin()
}

/** Returns false if another request has already restored or deleted the upload. */
async function deleteRow(deps: BinDeps, actor: Actor, row: UploadRow): Promise<boolean> {
  try {
    await removeUpload(deps, actor, row, { isBinned: true })
    return true
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'not_found') return false
    throw error
  }
}

function notInBin(): ServiceError {
  return new ServiceError('not_found', 'This artifact is not in the bin.')
}

async function recordChange(
  deps: BinDeps,
  actor: Actor,
  action: 'artifact.bin' | 'artifact.restore',
  { id, parent_key_id: tenantId, kind, received_bytes: bytes }: UploadRow,
): Promise<void> {
  const target = { kind: 'artifact', id } as const
  await recordAudit(deps, actor, { action, target, tenantId, details: { kind, bytes } })
}

/** Deletes the uploads that were moved to the bin at least 30 days ago, and returns how many it deleted. */
export async function purgeArtifactBin(deps: BinDeps): Promise<number> {
  let purged = 0
  for (;;) {
    const rows = await listOverdue(deps.db, unixSeconds(deps.clock) - BIN_SECONDS, PURGE_BATCH)
    for (const row of rows) if (await deleteRow(deps, serviceActor, row)) purged += 1
    if (rows.length < PURGE_BATCH) return purged
  }
}
