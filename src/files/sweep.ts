/** Clears away what no file needs any more: files that have expired, and bytes that belong to none. */
import { type Database, type Deps, unixSeconds } from '../deps.ts'
import type { Blobs } from '../storage/blobs.ts'
import {
  type BlobPlace,
  createSweeper,
  deleteInBatches,
  deleteOrphans,
  type Sweeper,
} from '../storage/sweeping.ts'
import { deleteExpiredRows, listOwnedBlobs } from './store.ts'

/** Where the bytes of files are, and which of them belong to a file. */
export function listFilePlaces(db: Database, blobs: Blobs): BlobPlace[] {
  const listOwned = (names: readonly string[]) => listOwnedBlobs(db, names)
  return [{ list: () => blobs.list(), listOwned, remove: (name) => blobs.delete(name) }]
}

/** A sweeper over the files of one store. */
export function createFileSweeper({
  db,
  clock,
  fileBlobs,
  log,
}: Pick<Deps, 'db' | 'clock' | 'fileBlobs' | 'log'>): Sweeper {
  const places = listFilePlaces(db, fileBlobs)

  async function deleteExpired(limit: number): Promise<number> {
    const blobs = await deleteExpiredRows(db, unixSeconds(clock), limit)
    for (const blob of blobs) await fileBlobs.delete(blob)
    return blobs.length
  }

  return createSweeper(clock, {
    sweepExpired: () => deleteInBatches(deleteExpired),
    async sweepOrphans(keptBeforeMs) {
      await deleteOrphans(places, { what: 'files', keptBeforeMs, log })
      await fileBlobs.discardAbandoned()
    },
  })
}
