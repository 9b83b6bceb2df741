/** Lists a tenant's artifacts. */
import { sql } from 'kysely'
import { z } from 'zod'
import { unixSeconds } from '../lib/clock.ts'
import { findListPlace, toPage } from '../lib/page.ts'
import { reference, searchText } from '../lib/schema-bounds.ts'
import { artifactNotFound } from './access.ts'
import type { Dependencies } from './dependencies.ts'
import { ArtifactStatus, renderStatus, storedKinds } from './schema.ts'
import { type ArtifactRow, findArtifact, isUpload, listArtifactRows, liveArtifacts } from './store.ts'

export const ArtifactListQuery = z.strictObject({
  limit: z.int().min(1).max(100).default(50).meta({ description: 'Maximum number of artifacts to return.' }),
  after: reference()
    .optional()
    .meta({ description: 'Id of an artifact; returns only artifacts after it in the list.' }),
  order: z
    .enum(['asc', 'desc'])
    .default('desc')
    .meta({ description: 'Sort order; `desc` returns the newest artifacts first.' }),
  sort: z
    .enum(['created', 'name', 'size'], { error: 'must be created, name or size' })
    .default('created')
    .meta({ description: 'Sort field.' }),
  q: searchText()
    .optional()
    .meta({ description: 'Returns only artifacts whose name, file name or id contains this text.' }),
  kind: z.enum(storedKinds).optional().meta({ description: 'Returns only artifacts of this kind.' }),
  state: z
    .enum(['uploading', 'processing', 'ready'], { error: 'must be uploading, processing or ready' })
    .optional()
    .meta({ description: 'Returns only artifacts in this state.' }),
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
  visitor: z
    .strictObject({ id: z.string(), agentId: z.string() })
    .optional()
    .meta({ description: 'Id of the visitor who uploaded the `attachment`; absent for other kinds.' }),
  finishedAt: seconds
    .nullable()
    .meta({ description: 'Time at which the last byte arrived, in Unix seconds.' }),
}).meta({ id: 'ListedArtifact' })

export const ArtifactList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(ListedArtifact),
    has_more: z.boolean().meta({ description: 'True if the list continues after this page.' }),
  })
  .meta({ id: 'ArtifactList' })

export const artifactSorts = {
  created: sql.ref('created_at'),
  name: sql`lower(coalesce(name, filename, id))`,
  size: sql`coalesce(size_bytes, 0)`,
} as const

/** Returns a page of the tenant's artifacts. Omits reserved ids, expired uploads and artifacts in the bin. */
export async function listArtifacts(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  tenantId: string,
  query: z.output<typeof ArtifactListQuery>,
): Promise<z.output<typeof ArtifactList>> {
  const now = unixSeconds(clock)
  const by = artifactSorts[query.sort]
  const after = await findListPlace(liveArtifacts(db, tenantId, now), by, query.after)
  const rows = await listArtifactRows(db, tenantId, now, { ...query, by, after, limit: query.limit + 1 })
  const page = toPage(rows, query.limit)
  return { object: 'list', data: page.rows.map((row) => renderListed(row, now)), has_more: page.hasMore }
}

/** @throws ServiceError `not_found`, including for a reserved id or another tenant's artifact. */
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
    ...(row.visitor_id !== null && { visitor: { id: row.visitor_id, agentId: row.agent_id ?? '' } }),
    finishedAt: row.finished_at,
  }
}
