/** Lists a tenant's artifacts in every state. */
import { z } from 'zod'
import { unixSeconds } from '../lib/clock.ts'
import { type PageQuery, readPage } from '../lib/page.ts'
import { reference } from '../lib/schema-bounds.ts'
import { artifactNotFound } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import { ArtifactStatus, renderStatus } from './schema.ts'
import { type ArtifactRow, findArtifact, isUnexpired, isUpload } from './store.ts'

export const ArtifactListQuery = z.strictObject({
  limit: z.int().min(1).max(100).default(50).meta({ description: 'Maximum number of artifacts to return.' }),
  after: reference()
    .optional()
    .meta({ description: 'Id of an artifact; returns only artifacts that were created before it.' }),
})

const seconds = z.int().meta({ description: 'Unix seconds.' })

export const ListedArtifact = ArtifactStatus.extend({
  filename: z.string(),
  mediaType: z
    .string()
    .nullable()
    .meta({ description: 'Media type of the file that the server serves; null until `ready`.' }),
  hasPoster: z.boolean(),
  createdAt: seconds,
  finishedAt: seconds
    .nullable()
    .meta({ description: 'Time at which the last byte arrived, in Unix seconds.' }),
}).meta({ id: 'ListedArtifact' })

export const ArtifactList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(ListedArtifact),
    has_more: z.boolean().meta({ description: 'True if there are older artifacts.' }),
  })
  .meta({ id: 'ArtifactList' })

/** Returns a page of the tenant's artifacts, newest first. Omits reserved ids and expired uploads. */
export async function listArtifacts(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  tenantId: string,
  query: PageQuery,
): Promise<z.output<typeof ArtifactList>> {
  const now = unixSeconds(clock)
  const { rows, hasMore } = await readPage(query, {
    find: (id) => findArtifact(db, tenantId, id, now),
    list: (limit, after) => {
      const uploads = db
        .selectFrom('artifacts')
        .selectAll()
        .where('parent_key_id', '=', tenantId)
        .where('state', '!=', 'unknown')
        .where(isUnexpired(now))
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
      if (after === undefined) return uploads.execute()
      return uploads
        .where((row) => row(row.refTuple('created_at', 'id'), '<', row.tuple(after.created_at, after.id)))
        .execute()
    },
  })
  return { object: 'list', data: rows.map((row) => renderListed(row, now)), has_more: hasMore }
}

/** @throws ServiceError `not_found`, also for a reserved id or another tenant's artifact. */
export async function getListedArtifact(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  tenantId: string,
  id: string,
): Promise<ArtifactRow> {
  const row = await findArtifact(db, tenantId, id, unixSeconds(clock))
  if (row === undefined || !isUpload(row)) throw artifactNotFound()
  return row
}

export function renderListed(row: ArtifactRow, now: number): z.output<typeof ListedArtifact> {
  return {
    ...renderStatus(row.id, row, now),
    filename: row.filename ?? '',
    mediaType: row.media_type,
    hasPoster: row.poster_blob !== null,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  }
}
