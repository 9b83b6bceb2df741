/** Opens databases with conversion jobs, and leases the jobs. */
import { insertJob, takeJob } from '../../src/artifacts/jobs/store.ts'
import { insertArtifact } from '../../src/artifacts/store.ts'
import type { Database } from '../../src/db/database.ts'
import { openTestDatabase, parentKey } from './database.ts'

const owner = 'a'.repeat(12)

/** Inserts a tenant with an artifact in the state `processing` for each blob. */
export async function insertUploads(db: Database, ...blobs: string[]): Promise<void> {
  await db.insertInto('parent_keys').values(parentKey(owner)).execute()
  for (const blob of blobs)
    await insertArtifact(db, { id: blob, parent_key_id: owner, state: 'processing', created_at: 1, blob })
}

/** Opens a database with a conversion job for each blob; the jobs are due at 100, 101 and so on. */
export async function openWithJobs(blobs: readonly string[], dataDir = ':memory:') {
  const { db } = await openTestDatabase('server', dataDir)
  await insertUploads(db, ...blobs)
  for (const [index, blob] of blobs.entries()) await insertJob(db, 'convert', blob, 100 + index)
  const take = (now: number, running: string[] = []) =>
    takeJob(db, 'convert', { now, until: now + 30, running })
  return { db, take }
}
