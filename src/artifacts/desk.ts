/** Everything of artifacts that lives as long as the service. */
import type { GrowingStore } from '../storage/growing.ts'
import { type ArtifactChanges, createArtifactChanges } from './changes.ts'
import { createProcessing, type Processing, type ProcessingDeps } from './processing.ts'
import { createUploadsUnderWay, type UploadsUnderWay } from './under-way.ts'

export interface ArtifactDesk {
  /** Where their bytes lie. */
  readonly store: GrowingStore
  readonly changes: ArtifactChanges
  readonly underWay: UploadsUnderWay
  readonly processing: Processing
  /** Ends what is under way, and gives back what the stores hold. */
  close(): Promise<void>
}

export function createArtifactDesk(deps: Omit<ProcessingDeps, 'changes'>): ArtifactDesk {
  const { store, workFolder, bus } = deps
  const changes = createArtifactChanges(bus)
  const processing = createProcessing({ ...deps, changes })
  return {
    store,
    changes,
    underWay: createUploadsUnderWay(bus),
    processing,
    async close() {
      await processing.close()
      await Promise.all([store.blobs.close(), workFolder.close()])
    },
  }
}
