/** What can be done with an artifact besides uploading it. */

import type { Actor } from '../audit/actor.ts'
import { type AuditDeps, recordAudit } from '../audit/audit.ts'
import { ServiceError } from '../errors.ts'
import { unixSeconds } from '../lib/clock.ts'
import { type ArtifactCaller, assertFor, assertUse } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import type { ArtifactDesk } from './desk.ts'
import { deleteJobs } from './jobs/store.ts'
import { findArtifact, findUploadRow, isUpload, removeArtifact, type UploadRow } from './store.ts'

/**
 * Removes an artifact, be it under way or ready; whoever is still sending its bytes is told, whoever is downloading them gets the rest.
 * @throws ServiceError `not_found` when somebody else was first.
 */
export async function removeUpload(
  deps: AuditDeps & Pick<Dependencies, 'clock' | 'log'> & { readonly artifacts: ArtifactDesk },
  actor: Actor,
  row: UploadRow,
): Promise<void> {
  const { id, kind, parent_key_id: tenantId, received_bytes: bytes } = row
  const isLeased = await deps.db.transaction().execute(async (trx) => {
    const lease = (await findUploadRow(trx, row))?.lease_until ?? 0
    await deleteJobs(trx, row.blob)
    if (!(await removeArtifact(trx, row, 'remove'))) throw artifactNotFound()
    const event = { action: 'artifact.delete', target: { kind: 'artifact', id } } as const
    // Not its names: the row is kept for good, and the owner wants them gone.
    await recordAudit({ ...deps, db: trx }, actor, { ...event, tenantId, details: { kind, bytes } })
    return lease > unixSeconds(deps.clock)
  })
  const { underWay, processing, changes } = deps.artifacts
  changes.announce(id)
  const wasHere = await underWay.stop(id, 'removed')
  if (isLeased && !wasHere) await underWay.stopElsewhere(id, 'removed')
  await processing.stop(row.blob)
  await deleteBytes(deps, row)
}

/**
 * Removes an artifact by its id, for its owner or whoever may upload it.
 * @throws ServiceError `not_found`, `insufficient_permissions`.
 */
export async function deleteArtifact(
  deps: Parameters<typeof removeUpload>[0],
  actor: Actor,
  caller: ArtifactCaller,
  id: string,
): Promise<void> {
  assertUse(caller, 'upload')
  const row = await findArtifact(deps.db, caller.tenantId, id, unixSeconds(deps.clock))
  assertFor(caller, id, row)
  if (row === undefined || !isUpload(row)) throw artifactNotFound()
  await removeUpload(deps, actor, row)
}

/** In whichever place they lie; those that cannot be deleted now are left to the sweeper, for their row is gone. */
export async function deleteBytes(
  { artifacts, log }: Pick<Dependencies, 'log'> & { readonly artifacts: ArtifactDesk },
  { id, blob, served_blob, poster_blob }: UploadRow,
): Promise<void> {
  const { blobs, growing } = artifacts.store
  const names = [...new Set([blob, served_blob, poster_blob])].filter((name) => name !== null)
  try {
    await growing.delete(blob)
    for (const name of names) await blobs.delete(name)
  } catch (err) {
    log.warn({ err, artifactId: id }, 'the bytes of an artifact could not be deleted yet')
  }
}

export function artifactNotFound(): ServiceError {
  return new ServiceError('not_found', 'There is no such artifact.')
}
