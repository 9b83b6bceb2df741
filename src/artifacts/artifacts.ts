/** Reserves, serves and deletes artifacts. */
import { randomUUID } from 'node:crypto'
import { basename, extname } from 'node:path'
import type { z } from 'zod'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { assertTenantLives } from '../identity/keys.ts'
import { unixSeconds } from '../lib/clock.ts'
import { Download } from '../operations/operation.ts'
import { wholeOf } from '../storage/blobs.ts'
import {
  type ArtifactCaller,
  artifactNotFound,
  assertAccess,
  assertRemovable,
  assertTokenUse,
} from './access.ts'
import type { ArtifactService, Dependencies } from './dependencies.ts'
import { recordEndings } from './endings.ts'
import { deleteJobs } from './jobs/store.ts'
import type { ArtifactReservation, ArtifactReserved } from './schema.ts'
import {
  type ArtifactRow,
  findArtifact,
  findUploadRow,
  insertArtifact,
  isUpload,
  removeArtifact,
  type UploadRow,
} from './store.ts'

export { moveArtifacts, sumArtifactBytes } from './store.ts'

/**
 * Deletes an artifact in any state; with `isBinned`, only one in the bin. Aborts an active upload, but lets
 * active downloads finish.
 * @throws ServiceError `not_found` if it was already deleted, or moved to or from the bin.
 */
export async function removeUpload(
  deps: AuditDeps & Pick<Dependencies, 'clock' | 'log' | 'artifacts'>,
  actor: Actor,
  row: UploadRow,
  { isBinned = false } = {},
): Promise<void> {
  const { id, kind, parent_key_id: tenantId, received_bytes: bytes } = row
  const isLeased = await deps.db.transaction().execute(async (trx) => {
    const lease = (await findUploadRow(trx, row))?.lease_until ?? 0
    await deleteJobs(trx, row.blob)
    if (!(await removeArtifact(trx, row, 'remove', isBinned))) throw artifactNotFound()
    await recordEndings(trx, [row], 'deleted', unixSeconds(deps.clock))
    const event = { action: 'artifact.delete', target: { kind: 'artifact', id } } as const
    // Omits file names, which could never be deleted from the audit log.
    await recordAudit({ ...deps, db: trx }, actor, { ...event, tenantId, details: { kind, bytes } })
    return lease > unixSeconds(deps.clock)
  })
  const { activeUploads, processing, changes } = deps.artifacts
  changes.publish(id)
  const wasHere = await activeUploads.stop(id, 'removed')
  if (isLeased && !wasHere) await activeUploads.stopOnOtherReplicas(id, 'removed')
  await processing.stop(row.blob)
  await deleteBytes(deps, row)
}

export async function deleteArtifact(
  deps: Parameters<typeof removeUpload>[0],
  actor: Actor,
  caller: ArtifactCaller,
  id: string,
): Promise<void> {
  assertTokenUse(caller, 'upload')
  const row = await findArtifact(deps.db, caller.tenantId, id, unixSeconds(deps.clock))
  assertAccess(caller, id, row)
  if (row === undefined || !isUpload(row)) throw artifactNotFound()
  assertRemovable(caller, row)
  await removeUpload(deps, actor, row)
}

/** Deletes an artifact's bytes. Never throws, because the sweeper retries failed deletions. */
export async function deleteBytes(
  { artifacts, log }: Pick<Dependencies, 'log'> & { readonly artifacts: Pick<ArtifactService, 'store'> },
  { id, blob, served_blob, poster_blob }: UploadRow,
): Promise<void> {
  const { blobs, resumable } = artifacts.store
  const names = [...new Set([blob, served_blob, poster_blob])].filter((name) => name !== null)
  try {
    await resumable.delete(blob)
    for (const name of names) await blobs.delete(name)
  } catch (err) {
    log.warn({ err, artifactId: id }, 'failed to delete the bytes of an artifact; the sweeper will retry')
  }
}

type ServingDeps = Pick<Dependencies, 'db' | 'clock' | 'artifacts'>

interface Served {
  readonly blob: string | null
  readonly sizeBytes: number | null
  readonly mediaType: string | null
  readonly filename: string
  readonly isAttachment: boolean
}

/**
 * Opens the converted file or the original.
 * @throws ServiceError `not_found` until the artifact is ready; `insufficient_permissions`.
 */
export function openArtifact(deps: ServingDeps, caller: ArtifactCaller, id: string): Promise<Download> {
  return open(deps, caller, id, (row) => ({
    blob: row.served_blob,
    sizeBytes: row.served_bytes,
    mediaType: row.media_type,
    filename: nameOf(row),
    // Forces a download of files that could not be converted, files whose content does not match their media
    // type, and visitors' uploads, which browsers must not run.
    isAttachment:
      row.kind === 'attachment' || row.conversion_reason !== null || row.sniffed_type !== row.media_type,
  }))
}

const endings: Readonly<Record<string, string>> = {
  'video/mp4': '.mp4',
  'image/jpeg': '.jpg',
  'image/webp': '.webp',
  'text/vtt': '.vtt',
}

function nameOf({ id, filename, conversion_result: result, media_type: mediaType }: ArtifactRow): string {
  const given = filename ?? id
  const ending = endings[mediaType ?? '']
  return result === 'converted' && ending !== undefined ? basename(given, extname(given)) + ending : given
}

/** @throws ServiceError `not_found` while the artifact has no poster; `insufficient_permissions`. */
export function openPoster(deps: ServingDeps, caller: ArtifactCaller, id: string): Promise<Download> {
  return open(deps, caller, id, (row) => ({
    blob: row.poster_blob,
    sizeBytes: row.poster_bytes,
    mediaType: 'image/jpeg',
    filename: 'poster.jpg',
    isAttachment: false,
  }))
}

async function open(
  deps: ServingDeps,
  caller: ArtifactCaller,
  id: string,
  choose: (row: ArtifactRow) => Served,
): Promise<Download> {
  assertTokenUse(caller, 'view')
  const find = () => findArtifact(deps.db, caller.tenantId, id, unixSeconds(deps.clock))
  const row = await find()
  assertAccess(caller, id, row)
  if (row === undefined) throw artifactNotFound()
  const { blob, sizeBytes, mediaType, filename, isAttachment } = choose(row)
  if (blob === null || sizeBytes === null || mediaType === null) throw artifactNotFound()
  return new Download({
    sizeBytes,
    entityTag: `"${blob}"`,
    mediaType,
    filename,
    isAttachment,
    async open(range) {
      try {
        return await deps.artifacts.store.blobs.open(blob, range ?? wholeOf(sizeBytes))
      } catch (error) {
        // Throws `not_found` if the artifact was deleted after its row was read.
        if ((await find()) === undefined) throw artifactNotFound()
        throw error
      }
    },
  })
}

/** @throws ServiceError `invalid_api_key` if the key was revoked. */
export async function reserveArtifact(
  deps: Pick<Dependencies, 'config' | 'db' | 'clock' | 'tokens'>,
  tenantId: string,
  { kind, related_to, expires_in }: ArtifactReservation,
): Promise<z.output<typeof ArtifactReserved>> {
  const { config, db, clock, tokens } = deps
  const now = unixSeconds(clock)
  const [artifactId, expiresAt] = [randomUUID(), now + expires_in]
  await db.transaction().execute(async (trx) => {
    await assertTenantLives({ db: trx }, tenantId)
    const row = { id: artifactId, parent_key_id: tenantId, state: 'unknown' } as const
    const times = { created_at: now, expires_at: expiresAt }
    await insertArtifact(trx, { ...row, ...times, kind: kind ?? null, related_to: related_to ?? null })
  })
  return {
    artifact_id: artifactId,
    upload_token: tokens.mint({ artifactId, use: 'upload', tenantId, expiresAt }),
    view_token: tokens.mint({ artifactId, use: 'view', tenantId, expiresAt }),
    expires_at: expiresAt,
    upload_url: `${config.server.publicUrl ?? ''}/upload`,
  }
}
