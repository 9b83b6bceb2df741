/** Rows of one-time links and of the sessions that began with them. */

import type { Database } from '../db/database.ts'
import type { SecretTable } from '../db/tables.ts'

type SecretTableName = 'sign_in_links' | 'sessions'

export async function insertSecret(db: Database, table: SecretTableName, row: SecretTable): Promise<void> {
  await db.insertInto(table).values(row).execute()
}

/** Uses a link up; false when there is none, or its time was over by `now` (Unix seconds). */
export async function takeLink(db: Database, digest: string, now: number): Promise<boolean> {
  const row = await db
    .deleteFrom('sign_in_links')
    .where('digest', '=', digest)
    .where('expires_at', '>', now)
    .returning('digest')
    .executeTakeFirst()
  return row !== undefined
}

/** Whether there is such a session at `now` (Unix seconds). */
export async function hasSession(db: Database, digest: string, now: number): Promise<boolean> {
  const query = db
    .selectFrom('sessions')
    .select('digest')
    .where('digest', '=', digest)
    .where('expires_at', '>', now)
  return (await query.executeTakeFirst()) !== undefined
}

export async function deleteSession(db: Database, digest: string): Promise<void> {
  await db.deleteFrom('sessions').where('digest', '=', digest).execute()
}

/** Deletes what is over by `now` (Unix seconds). */
export async function deleteExpiredSecrets(db: Database, now: number): Promise<void> {
  for (const table of ['sign_in_links', 'sessions'] as const) {
    await db.deleteFrom(table).where('expires_at', '<=', now).execute()
  }
}
