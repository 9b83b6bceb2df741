/** Puts uploads in order that a process left behind, however it ended. Security: 2.8. */

import { ServiceError } from '../errors.ts'
import { unixSeconds } from '../lib/clock.ts'
import { type CompletionDeps, completeUpload } from './completion.ts'
import { clearTakenJobs } from './jobs/store.ts'
import { leaseUpload } from './lease.ts'
import { clearLeases, listCompletable, listUploading, lowerReceived } from './upkeep-store.ts'

/** Rows looked at in one statement. */
const BATCH = 200

/**
 * To be called before the first request, by the only server there is: leases of the process before are void, those of jobs too, and no
 * upload claims more bytes than are there. In a bucket those are not looked for one by one: whoever goes on with an upload finds out.
 */
export async function recoverUploads(deps: CompletionDeps): Promise<void> {
  await clearLeases(deps.db)
  await clearTakenJobs(deps.db, unixSeconds(deps.clock))
  if (!deps.artifacts.store.growing.survivesCrashes) await trustTheLess(deps)
}

/** "On start trust min(DB offset, file size)": what was written behind the offset goes when the upload goes on. */
async function trustTheLess({ db, log, artifacts }: CompletionDeps): Promise<void> {
  for (let after = ''; ; ) {
    const rows = await listUploading(db, after, BATCH)
    for (const row of rows) {
      const sizeBytes = (await artifacts.store.growing.findSize(row.blob)) ?? 0
      if (sizeBytes >= row.received_bytes) continue
      log.warn({ artifactId: row.id, sizeBytes, receivedBytes: row.received_bytes }, 'bytes were lost')
      await lowerReceived(db, row, sizeBytes)
    }
    if (rows.length < BATCH) return
    after = rows.at(-1)?.id ?? ''
  }
}

/** Ends uploads that have all their bytes and that nobody is ending at the moment. */
export async function completeLeftOver(deps: CompletionDeps): Promise<void> {
  for (const row of await listCompletable(deps.db, BATCH)) await completeOne(deps, row)
}

/** One that cannot be completed does not keep the others from it. */
async function completeOne(deps: CompletionDeps, upload: { id: string; blob: string }): Promise<void> {
  try {
    const lease = await leaseUpload(deps, upload)
    try {
      await completeUpload(deps, lease.row)
    } finally {
      await lease.release()
    }
  } catch (error) {
    // Somebody is at it, the checksum is wrong, or its owner is gone.
    if (!(error instanceof ServiceError))
      deps.log.warn({ err: error, artifactId: upload.id }, 'an upload could not be completed')
  }
}
