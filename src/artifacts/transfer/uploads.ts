/** Creates uploads and finds them by their URL. */
import { randomUUID } from 'node:crypto'
import { mapConstraintError } from '../../db/open.ts'
import { assertTenantLives } from '../../identity/keys.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { newId } from '../../lib/ids.ts'
import {
  type ArtifactCaller,
  artifactNotFound,
  assertAccess,
  assertTokenUse,
  grantsAccess,
  wrongArtifact,
} from '../access.ts'
import type { Dependencies } from '../dependencies.ts'
import { invalidMetadata, type UploadMetadata } from '../metadata.ts'
import {
  type ArtifactRow,
  beginReserved,
  deleteExpired,
  findArtifact,
  findUpload,
  insertArtifact,
  isUpload,
  type UploadRow,
} from '../store.ts'

/** 190 bits of randomness, so that upload URLs cannot be guessed. */
const SEGMENT_LENGTH = 32

export type UploadDeps = Pick<Dependencies, 'config' | 'db' | 'clock' | 'random' | 'quota' | 'artifacts'>

interface NewUpload {
  readonly metadata: UploadMetadata
  readonly header: string | undefined
  readonly sizeBytes: number | undefined
}

/** Seconds after completion during which a repeated creation request returns the same upload. */
const REPEATABLE_SECONDS = 600

/**
 * Creates an upload. Returns the existing upload if the same request was sent before, because the client may
 * not have received the response.
 * @throws ServiceError `conflict` (id taken), `insufficient_permissions`, `invalid_value`, `too_large`,
 * `storage_full`, `invalid_api_key`.
 */
export async function createUpload(
  deps: UploadDeps,
  caller: ArtifactCaller,
  upload: NewUpload,
): Promise<{ readonly row: UploadRow; readonly isRepeated: boolean }> {
  assertTokenUse(caller, 'upload')
  assertLength(deps, upload.sizeBytes ?? 0)
  const { artifactId, relatedTo } = upload.metadata
  // Defaults to the token's artifact id, unless the upload is only related to that artifact.
  const isOfToken = caller.kind === 'token' && relatedTo !== caller.artifactId
  const id = artifactId ?? (isOfToken ? caller.artifactId : randomUUID())
  await deps.artifacts.store.resumable.assertSpace(upload.sizeBytes ?? 0)
  try {
    const row = await deps.db
      .transaction()
      .execute((trx) => insertUpload({ ...deps, db: trx }, caller, id, upload))
    deps.artifacts.changes.publish(id)
    return { row, isRepeated: false }
  } catch (error) {
    const failure = mapConstraintError(error) === 'unique' ? taken() : error
    const isTaken = failure instanceof ServiceError && failure.reason === 'conflict'
    const row = isTaken ? await findSameUpload(deps, caller, id, upload) : undefined
    if (row === undefined) throw failure
    return { row, isRepeated: true }
  }
}

/**
 * Finds the upload that an earlier request with the same length and metadata created, if the caller may
 * access it.
 */
async function findSameUpload(
  { db, clock }: UploadDeps,
  caller: ArtifactCaller,
  id: string,
  { header, sizeBytes }: NewUpload,
): Promise<UploadRow | undefined> {
  const now = unixSeconds(clock)
  const row = await findArtifact(db, caller.tenantId, id, now)
  if (row === undefined || !isUpload(row) || !grantsAccess(caller, row)) return undefined
  const isSame = row.metadata === (header ?? null) && row.size_bytes === (sizeBytes ?? null)
  return isSame && now - (row.finished_at ?? now) <= REPEATABLE_SECONDS ? row : undefined
}

/** @throws ServiceError `too_large` */
export function assertLength({ config }: Pick<Dependencies, 'config'>, sizeBytes: number): void {
  const { maxUploadBytes } = config.limits
  if (sizeBytes > maxUploadBytes)
    throw tooLarge(`The upload is larger than the limit of ${maxUploadBytes} bytes.`)
}

export function tooLarge(message: string): ServiceError {
  return new ServiceError('too_large', message)
}

async function insertUpload(
  deps: UploadDeps,
  caller: ArtifactCaller,
  id: string,
  { metadata, header, sizeBytes }: NewUpload,
): Promise<UploadRow> {
  const { db, clock, config, random } = deps
  const { tenantId } = caller
  const now = unixSeconds(clock)
  await assertTenantLives(deps, tenantId)
  await deleteExpired(db, id, now)
  const found = await findArtifact(db, tenantId, id, now)
  const reserved = found?.state === 'unknown' ? found : undefined
  const relatedTo = metadata.relatedTo ?? reserved?.related_to ?? null
  assertAccess(caller, id, { id, related_to: relatedTo })
  if (found !== reserved || (reserved !== undefined && !grantsAccess(caller, reserved))) throw taken()
  if (reserved === undefined && caller.kind === 'token' && caller.use === 'attach') throw artifactNotFound()
  assertAsReserved(metadata, sizeBytes, reserved)
  await deps.quota.assertFits(db, tenantId, sizeBytes ?? 0)
  const values = {
    segment: newId('', SEGMENT_LENGTH, random),
    kind: metadata.kind ?? reserved?.kind ?? 'video',
    related_to: relatedTo,
    name: metadata.name ?? null,
    filename: reserved?.filename ?? metadata.filename,
    filetype: metadata.filetype ?? null,
    checksum: metadata.checksum ?? null,
    metadata: header ?? null,
    size_bytes: sizeBytes ?? null,
    kept_bytes: sizeBytes ?? 0,
    blob: randomUUID(),
    created_at: now,
    expires_at: now + config.uploads.expirySeconds,
  } as const
  if (reserved === undefined)
    await insertArtifact(db, { id, parent_key_id: tenantId, state: 'uploading', ...values })
  else if (!(await beginReserved(db, tenantId, id, values))) throw taken()
  return getUpload(deps, caller, values.segment)
}

function assertAsReserved(
  { kind, relatedTo }: UploadMetadata,
  sizeBytes: number | undefined,
  reserved: Pick<ArtifactRow, 'kind' | 'related_to' | 'size_bytes'> | undefined,
): void {
  if (reserved === undefined) return
  if (reserved.size_bytes !== null && sizeBytes !== Number(reserved.size_bytes))
    throw new ServiceError(
      'invalid_value',
      `Upload-Length: must be ${reserved.size_bytes}, the size for which the id was reserved`,
    )
  if (kind !== undefined && reserved.kind !== null && kind !== reserved.kind)
    throw invalidMetadata('kind', `must be '${reserved.kind}', the kind for which the id was reserved`)
  if (relatedTo !== undefined && reserved.related_to !== null && relatedTo !== reserved.related_to)
    throw invalidMetadata('relatedTo', "must match the reservation's relatedTo")
}

export async function getUpload(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  caller: ArtifactCaller,
  segment: string,
): Promise<UploadRow> {
  assertTokenUse(caller, 'upload')
  const row = await findUpload(db, caller.tenantId, segment, unixSeconds(clock))
  if (row === undefined)
    throw new ServiceError('not_found', 'Upload not found; it may have expired or been deleted.')
  if (!grantsAccess(caller, row)) throw wrongArtifact()
  return row
}

function taken(): ServiceError {
  return new ServiceError('conflict', 'artifactId is already in use', { param: 'artifactId' })
}
