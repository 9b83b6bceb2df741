/** Stores, lists, downloads and deletes a tenant's files. */
import type { Database } from '../db/database.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { assertTenantLives } from '../identity/keys.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { type Page, toPage } from '../lib/page.ts'
import { Download } from '../operations/operation.ts'
import { type Blobs, sniff, wholeOf } from '../storage/blobs.ts'
import { type BlobPlace, createSweeper, type Sweeper } from '../storage/sweeper.ts'
import type { Dependencies } from './dependencies.ts'
import type { FileListQuery, FileUpload } from './schema.ts'
import {
  deleteExpiredRows,
  deleteFileRow,
  type FileRow,
  findFile,
  findFilePlace,
  insertFile,
  listFileRows,
  listOwnedBlobs,
} from './store.ts'

export { listOwnedBlobs as listFileBlobs, moveFiles } from './store.ts'

type FileDeps = Pick<Dependencies, 'db' | 'clock' | 'log' | 'fileBlobs'>
type ListOwned = BlobPlace['listOwned']

interface SweeperDeps extends FileDeps {
  readonly conversations: { readonly data: { readonly listOwned: ListOwned } }
}

/**
 * Stores an uploaded file and its row.
 * @throws ServiceError `storage_full`, `too_large`; `invalid_api_key` if the tenant's key was revoked during
 * the upload.
 */
export async function createFile(
  deps: FileDeps & Pick<Dependencies, 'quota' | 'random' | 'nextPosition'>,
  tenantId: string,
  { file, purpose, expires_after }: FileUpload,
): Promise<FileRow> {
  const { blob, filename } = file
  const mediaType = await sniff(blob.head)
  await blob.commit()
  const position = deps.nextPosition()
  const createdAt = unixSeconds(deps.clock)
  const row: FileRow = {
    id: newFileId(position, deps.random),
    parent_key_id: tenantId,
    blob: blob.name,
    size_bytes: blob.sizeBytes,
    filename,
    purpose,
    media_type: mediaType,
    position,
    created_at: createdAt,
    expires_at: expires_after === undefined ? null : createdAt + expires_after.seconds,
  }
  try {
    await deps.db.transaction().execute(async (trx) => {
      await assertTenantLives({ db: trx }, tenantId)
      await deps.quota.assertFits(trx, tenantId, row.size_bytes)
      await insertFile(trx, row)
    })
  } catch (error) {
    await removeBytes(deps, blob.name)
    throw error
  }
  return row
}

/**
 * @throws ServiceError `invalid_value` if `after` is not a file id or, in a list sorted by name or size, not
 * the id of a listed file.
 */
export async function listFiles(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  tenantId: string,
  { limit, after: afterId, order, sort, q, purpose }: FileListQuery,
): Promise<Page<FileRow>> {
  const now = unixSeconds(clock)
  const after =
    sort !== 'created' || afterId === undefined
      ? await findFilePlace(db, tenantId, now, sort, afterId)
      : { key: positionOf(afterId), id: afterId }
  const rows = await listFileRows(db, tenantId, now, { limit: limit + 1, after, sort, order, q, purpose })
  return toPage(rows, limit)
}

/** @throws ServiceError `not_found`, including for another tenant's file. */
export async function getFile(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  tenantId: string,
  id: string,
): Promise<FileRow> {
  const row = await findFile(db, tenantId, id, unixSeconds(clock))
  if (row === undefined) throw fileNotFound()
  return row
}

export async function downloadFile(deps: FileDeps, tenantId: string, id: string): Promise<Download> {
  const { blob, size_bytes, media_type, filename } = await getFile(deps, tenantId, id)
  return new Download({
    sizeBytes: size_bytes,
    entityTag: `"${id}"`,
    mediaType: media_type,
    filename,
    async open(range) {
      try {
        return await deps.fileBlobs.open(blob, range ?? wholeOf(size_bytes))
      } catch (error) {
        // Throws `not_found` if the file was deleted after its row was read.
        await getFile(deps, tenantId, id)
        throw error
      }
    },
  })
}

/** Deletes a file, but lets active downloads finish. @throws ServiceError `not_found` */
export async function deleteFile(
  deps: FileDeps & AuditDeps,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<void> {
  const { blob } = await deps.db.transaction().execute(async (trx) => {
    const row = await getFile({ ...deps, db: trx }, tenantId, id)
    if (!(await deleteFileRow(trx, tenantId, id))) throw fileNotFound()
    const target = { kind: 'file', id } as const
    // Omits the file name, which could never be deleted from the audit log.
    const details = { purpose: row.purpose, bytes: row.size_bytes }
    await recordAudit({ ...deps, db: trx }, actor, { action: 'file.delete', target, tenantId, details })
    return row
  })
  // Deletes the row first, because a row without bytes is a broken file, while the sweeper deletes bytes
  // without a row.
  await removeBytes(deps, blob)
}

/** Deletes a file's bytes. Never throws, because the sweeper retries failed deletions. */
async function removeBytes({ fileBlobs, log }: FileDeps, blob: string): Promise<void> {
  await fileBlobs
    .delete(blob)
    .catch((err) => log.warn({ err, blob }, 'failed to delete the bytes of a file; the sweeper will retry'))
}

function fileNotFound(): ServiceError {
  return new ServiceError('not_found', 'File not found.')
}

/** The id starts with the file's position, so that paging can continue after a file that has been deleted. */
function newFileId(position: number, random: Dependencies['random']): string {
  return newId(`file-${position.toString(36).padStart(11, '0')}`, 16, random)
}

function positionOf(id: string): number {
  const [, digits] = /^file-([0-9a-z]{11})[0-9A-Za-z]{16}$/.exec(id) ?? []
  if (digits === undefined)
    throw new ServiceError('invalid_value', `after: must be a file id (got '${id}')`, { param: 'after' })
  return Number.parseInt(digits, 36)
}

/** `listOthers` finds the blobs of stored conversations, which are in the same store. */
export function listFilePlaces(db: Database, blobs: Blobs, listOthers: ListOwned): BlobPlace[] {
  const listOwned: ListOwned = async (names) => {
    const [own, others] = await Promise.all([listOwnedBlobs(db, names), listOthers(names)])
    return new Set([...own, ...others])
  }
  return [{ list: () => blobs.list(), listOwned, remove: (name) => blobs.delete(name) }]
}

export function createFileSweeper({ db, clock, fileBlobs, log, conversations }: SweeperDeps): Sweeper {
  return createSweeper({
    clock,
    log,
    what: 'files',
    places: listFilePlaces(db, fileBlobs, (names) => conversations.data.listOwned(names)),
    blobs: fileBlobs,
    async deleteExpired(limit, nowMs) {
      const blobs = await deleteExpiredRows(db, Math.floor(nowMs / 1000), limit)
      for (const blob of blobs) await fileBlobs.delete(blob)
      return blobs.length
    },
  })
}
