/** Writes down how far a conversion is, now and then. */

import type { ArtifactChanges } from '../changes.ts'
import type { Dependencies } from '../dependencies.ts'
import { raiseProgress, type UploadRow } from '../store.ts'

/** Nobody is told more often either. Decision: 9 (Status). */
const WRITE_EVERY_MS = 250

export interface ProgressWriter {
  /** 0 to 1. What comes too soon after another is left out. */
  report(share: number): void
  /** Resolves when nothing is being written. */
  settle(): Promise<void>
}

export function createProgressWriter(
  { db, clock, log }: Pick<Dependencies, 'db' | 'clock' | 'log'>,
  changes: ArtifactChanges,
  row: UploadRow,
): ProgressWriter {
  let nextAtMs = clock.monotonic()
  let writing: Promise<void> | undefined

  async function write(share: number): Promise<void> {
    try {
      // Another try begins anew, but nobody sees it fall.
      if (await raiseProgress(db, row, Math.floor(share * 1000))) changes.announce(row.id)
    } catch (error) {
      log.warn({ err: error, artifactId: row.id }, 'progress could not be written down')
    }
    writing = undefined
  }

  return {
    report(share) {
      if (writing !== undefined || clock.monotonic() < nextAtMs) return
      nextAtMs = clock.monotonic() + WRITE_EVERY_MS
      writing = write(share)
    },
    async settle() {
      await writing
    },
  }
}
