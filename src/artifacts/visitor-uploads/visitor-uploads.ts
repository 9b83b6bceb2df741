/** Reserves, finds and deletes the files that visitors upload for their messages (ADR 0079). */
import { randomUUID } from 'node:crypto'
import { assertTenantLives } from '../../identity/keys.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { ServiceError } from '../../lib/errors.ts'
import { HEAD_BYTES, sniff } from '../../storage/blobs.ts'
import { deleteBytes } from '../artifacts.ts'
import type {
  ArtifactService,
  Dependencies,
  ReservedUpload,
  UploadOwner,
  VisitorUpload,
  VisitorUploads,
} from '../dependencies.ts'
import { recordEndings } from '../endings.ts'
import { deleteJobs } from '../jobs/store.ts'
import { type ArtifactRow, insertArtifact, isUpload, type UploadRow } from '../store.ts'
import {
  findOwnUpload,
  KIND,
  listAttachments,
  listExpiredUploads,
  listKeptUploads,
  listStartTimes,
  moveUploads,
  setExpiry,
} from './rows.ts'

/** Lifetime of a visitor's token for one upload. */
const TOKEN_SECONDS = 6 * 3_600
/** Time after which a complete upload that is not in any message is deleted. */
export const UNSENT_SECONDS = 86_400
/**
 * Delay before a kept upload that is not in any message is deleted; the message that contains it may be about
 * to be stored.
 */
const UNREFERENCED_SECONDS = 3_600
const HOUR_SECONDS = 3_600
const BATCH = 200

type DeletionDeps = Pick<Dependencies, 'db' | 'clock' | 'log'> & {
  readonly artifacts: Pick<ArtifactService, 'store'> &
    Partial<Pick<ArtifactService, 'changes' | 'processing'>>
}

type UploadsDeps = DeletionDeps & Pick<Dependencies, 'config' | 'tokens' | 'quota'>

export function createVisitorUploads(deps: UploadsDeps): VisitorUploads {
  const { db, clock } = deps
  let sweptTo = ''
  return {
    reserve: (owner, file, perHour) => reserve(deps, owner, file, perHour),
    async find(owner, id) {
      const row = await findOwnUpload(db, owner, id, unixSeconds(clock))
      return row && toVisitorUpload(row)
    },
    keep: (ids) => setExpiry(db, ids, null),
    move: (from, visitorId) => moveUploads(db, from, visitorId),
    delete: (ids) => deleteVisitorUploads(deps, { ids }),
    deleteOf: (visitor) => deleteVisitorUploads(deps, visitor),
    async sweep(now, listReferenced) {
      const expired = await listExpiredUploads(db, now, BATCH)
      const sent = expired.length === 0 ? new Set<string>() : await listReferenced(expired)
      await setExpiry(db, [...sent], null)
      await deleteVisitorUploads(deps, { ids: expired.filter((id) => !sent.has(id)) })
      const kept = await listKeptUploads(db, sweptTo, BATCH)
      sweptTo = kept.length < BATCH ? '' : (kept.at(-1) ?? '')
      if (kept.length === 0) return
      const referenced = await listReferenced(kept)
      const unreferenced = kept.filter((id) => !referenced.has(id))
      await setExpiry(db, unreferenced, unixSeconds(clock) + UNREFERENCED_SECONDS)
    },
  }
}

async function reserve(
  { config, db, clock, quota, tokens, artifacts }: UploadsDeps,
  owner: UploadOwner,
  { filename, sizeBytes }: Pick<VisitorUpload, 'filename' | 'sizeBytes'>,
  perHour: number,
): Promise<ReservedUpload> {
  const { tenantId, agentId, visitorId } = owner
  const { maxUploadBytes } = config.limits
  if (sizeBytes > maxUploadBytes)
    throw new ServiceError('too_large', `bytes: must be at most ${maxUploadBytes} (got ${sizeBytes})`, {
      param: 'bytes',
    })
  await artifacts.store.resumable.assertSpace(sizeBytes)
  const now = unixSeconds(clock)
  const [id, expiresAt] = [randomUUID(), now + TOKEN_SECONDS]
  await db.transaction().execute(async (trx) => {
    // Locks the tenant, so that concurrent requests cannot exceed the limits.
    await assertTenantLives({ db: trx }, tenantId)
    const starts = await listStartTimes(trx, owner, now - HOUR_SECONDS)
    if (starts.length >= perHour) {
      const retryAfterSeconds = Math.max(1, (starts.at(-perHour) ?? now) + HOUR_SECONDS - now)
      throw new ServiceError(
        'rate_limit_exceeded',
        `A visitor of this agent may upload at most ${perHour} files per hour. Try again in ${retryAfterSeconds} s.`,
        { retryAfterSeconds },
      )
    }
    await quota.assertFits(trx, tenantId, sizeBytes)
    await insertArtifact(trx, {
      ...{ id, parent_key_id: tenantId, state: 'unknown', kind: KIND },
      ...{ agent_id: agentId, visitor_id: visitorId, filename, size_bytes: sizeBytes },
      ...{ created_at: now, expires_at: expiresAt },
    })
  })
  return { id, token: tokens.mint({ artifactId: id, use: 'attach', tenantId, expiresAt }), expiresAt }
}

function toVisitorUpload({ id, filename, received_bytes, media_type }: UploadRow): VisitorUpload {
  const mediaType = media_type ?? 'application/octet-stream'
  return { id, filename, sizeBytes: Number(received_bytes), mediaType }
}

/**
 * Deletes visitors' uploads in any state, including reserved ids. Never deletes artifacts of other kinds.
 */
export async function deleteVisitorUploads(
  deps: DeletionDeps,
  which: Parameters<typeof listAttachments>[1],
): Promise<void> {
  for (const row of await listAttachments(deps.db, which)) await deleteOne(deps, row)
}

async function deleteOne(deps: DeletionDeps, row: ArtifactRow): Promise<void> {
  const { db, clock, artifacts } = deps
  await db.transaction().execute(async (trx) => {
    if (row.blob !== null) await deleteJobs(trx, row.blob)
    const { numDeletedRows } = await trx
      .deleteFrom('artifacts')
      .where('id', '=', row.id)
      .where('kind', '=', KIND)
      .executeTakeFirstOrThrow()
    if (numDeletedRows > 0n && isUpload(row)) await recordEndings(trx, [row], 'deleted', unixSeconds(clock))
  })
  if (!isUpload(row)) return
  artifacts.changes?.publish(row.id)
  await artifacts.processing?.stop(row.blob)
  await deleteBytes(deps, row)
}

/** Returns the columns of a ready artifact that serves the uploaded bytes. */
export async function describeUpload(
  { artifacts }: { readonly artifacts: Pick<ArtifactService, 'store'> },
  { blob, received_bytes: sizeBytes }: UploadRow,
) {
  const head =
    sizeBytes === 0
      ? []
      : await (
          await artifacts.store.blobs.open(blob, { start: 0, end: Math.min(HEAD_BYTES, sizeBytes) - 1 })
        ).toArray()
  const mediaType = await detectType(Buffer.concat(head))
  return {
    served_blob: blob,
    served_bytes: sizeBytes,
    media_type: mediaType,
    sniffed_type: mediaType,
    conversion_result: 'original',
  } as const
}

/**
 * Returns the media type of a file. Text has no signature, so UTF-8 without control characters counts as
 * text. The head may end within a character.
 */
async function detectType(head: Buffer): Promise<string> {
  const found = await sniff(head)
  if (found !== 'application/octet-stream') return found
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true })
    return /[^\P{Cc}\t\n\f\r\u0080-\u009F]/u.test(text) ? found : 'text/plain'
  } catch {
    return found
  }
}
