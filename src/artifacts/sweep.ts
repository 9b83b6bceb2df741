/** Clears away uploads that were not finished in time, reserved ids whose time is up, and bytes that belong to nothing. */
import { type Database, unixSeconds } from '../deps.ts'
import type { GrowingStore } from '../storage/growing.ts'
import {
  type BlobPlace,
  createSweeper,
  deleteInBatches,
  deleteOrphans,
  type Sweeper,
} from '../storage/sweeping.ts'
import type { CompletionDeps } from './completion.ts'
import { completeLeftOver } from './recovery.ts'
import { deleteExpiredArtifacts, listGrowingBlobs, listOwnedBlobs } from './upkeep-store.ts'

/** Where the bytes of artifacts are, and which of them belong to one. */
export function listArtifactPlaces(db: Database, { blobs, growing }: GrowingStore): BlobPlace[] {
  return [
    {
      list: () => blobs.list(),
      listOwned: (names) => listOwnedBlobs(db, names),
      remove: (name) => blobs.delete(name),
    },
    // What is whole does not grow any more: a late call of a writer that was fenced out may have left something there.
    {
      list: () => growing.list(),
      listOwned: (names) => listGrowingBlobs(db, names),
      remove: (name) => growing.delete(name),
    },
  ]
}

/** A sweeper over all artifacts. It also ends uploads that have all their bytes, but could not be completed at the time. */
export function createArtifactSweeper(deps: CompletionDeps): Sweeper {
  const { db, clock, metrics, log } = deps
  const { store, changes } = deps.artifacts
  const places = listArtifactPlaces(db, store)

  async function deleteExpired(limit: number): Promise<number> {
    const rows = await deleteExpiredArtifacts(db, unixSeconds(clock), limit)
    for (const { id, blob } of rows) {
      if (blob !== null) await store.growing.delete(blob)
      changes.announce(id)
    }
    metrics.uploadFailed('expired', rows.filter(({ blob }) => blob !== null).length)
    return rows.length
  }

  return createSweeper(clock, {
    async sweepExpired() {
      await deleteInBatches(deleteExpired)
      await completeLeftOver(deps)
    },
    async sweepOrphans(keptBeforeMs) {
      await deleteOrphans(places, { what: 'artifacts', keptBeforeMs, log })
      await store.blobs.discardAbandoned()
    },
  })
}
