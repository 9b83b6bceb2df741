/** Clears away uploads that were not finished in time, reserved ids whose time is up, and bytes that belong to nothing. */
import { unixSeconds } from '../lib/clock.ts'
import { createSweeper, deleteInBatches, deleteOrphans, type Sweeper } from '../storage/sweeping.ts'
import type { CompletionDeps } from './completion.ts'
import { completeLeftOver } from './recovery.ts'
import { deleteExpiredArtifacts, listGrowingBlobs, listOwnedBlobs } from './upkeep-store.ts'

/** A sweeper over all artifacts. It also ends uploads that have all their bytes, but could not be completed at the time. */
export function createArtifactSweeper(deps: CompletionDeps): Sweeper {
  const { db, clock, metrics } = deps
  const { store, changes } = deps.artifacts

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
      const places = [
        [store.blobs, listOwnedBlobs],
        // What is whole does not grow any more: a late call of a writer that was fenced out may have left something there.
        [store.growing, listGrowingBlobs],
      ] as const
      for (const [place, listOf] of places) {
        const remove = (name: string) => place.delete(name)
        const listOwned = (names: readonly string[]) => listOf(db, names)
        await deleteOrphans(place.list(), { keptBeforeMs, remove, listOwned })
      }
      await store.blobs.discardAbandoned()
    },
  })
}
