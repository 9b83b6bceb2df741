/** Clears away what no file needs any more: files that have expired, and bytes that belong to none. */

import { unixSeconds } from '../lib/clock.ts'
import { createSweeper, deleteInBatches, deleteOrphans, type Sweeper } from '../storage/sweeping.ts'
import type { Dependencies } from './dependencies.ts'
import { deleteExpiredRows, listOwnedBlobs } from './store.ts'

/** A sweeper over the files of one store. */
export function createFileSweeper({
  db,
  clock,
  fileBlobs,
}: Pick<Dependencies, 'db' | 'clock' | 'fileBlobs'>): Sweeper {
  const remove = (blob: string) => fileBlobs.delete(blob)

  async function deleteExpired(limit: number): Promise<number> {
    const blobs = await deleteExpiredRows(db, unixSeconds(clock), limit)
    for (const blob of blobs) await remove(blob)
    return blobs.length
  }

  return createSweeper(clock, {
    sweepExpired: () => deleteInBatches(deleteExpired),
    async sweepOrphans(keptBeforeMs) {
      const listOwned = (names: readonly string[]) => listOwnedBlobs(db, names)
      await deleteOrphans(fileBlobs.list(), { keptBeforeMs, remove, listOwned })
      await fileBlobs.discardAbandoned()
    },
  })
}
