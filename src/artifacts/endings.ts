/** Records why artifacts became `unknown`, for callers that still have a token. */
import type { Selectable } from 'kysely'
import type { Database } from '../db/database.ts'
import type { ArtifactEndingTable } from '../db/tables.ts'
import { MAX_TOKEN_SECONDS } from './schema.ts'
import type { ArtifactRow } from './store.ts'

export type Ending = Selectable<ArtifactEndingTable>

/** Records why artifacts are deleted. Call it in the transaction that deletes them; `now` is in Unix seconds. */
export async function recordEndings(
  trx: Database,
  artifacts: readonly Pick<ArtifactRow, 'id' | 'parent_key_id' | 'related_to'>[],
  reason: Ending['reason'],
  now: number,
): Promise<void> {
  if (artifacts.length === 0) return
  const rows = artifacts.map(({ id, parent_key_id, related_to }) => {
    return { id, parent_key_id, related_to, reason, ended_at: now }
  })
  await trx
    .insertInto('artifact_endings')
    .values(rows)
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet(({ ref }) => ({
        parent_key_id: ref('excluded.parent_key_id'),
        related_to: ref('excluded.related_to'),
        reason: ref('excluded.reason'),
        ended_at: ref('excluded.ended_at'),
      })),
    )
    .execute()
}

export async function findEnding(db: Database, tenantId: string, id: string): Promise<Ending | undefined> {
  return db
    .selectFrom('artifact_endings')
    .selectAll()
    .where('id', '=', id)
    .where('parent_key_id', '=', tenantId)
    .executeTakeFirst()
}

/** Deletes up to `limit` endings that are older than the longest possible lifetime of a token. */
export async function deleteOldEndings(db: Database, now: number, limit: number): Promise<void> {
  await db
    .deleteFrom('artifact_endings')
    .where('id', 'in', (query) =>
      query
        .selectFrom('artifact_endings')
        .select('id')
        .where('ended_at', '<', now - MAX_TOKEN_SECONDS)
        .orderBy('ended_at')
        .limit(limit),
    )
    .execute()
}
