/** Tells within this process that an artifact has changed; the interface is what a shared store will fill too. */
import { EventEmitter } from 'node:events'

export interface ArtifactChanges {
  /** Says that what can be known of the artifact may be another now. */
  announce(id: string): void
  /** Calls `listener` after every announcement of that artifact, until the function returned is called. */
  listen(id: string, listener: () => void): () => void
}

export function createArtifactChanges(): ArtifactChanges {
  // Any number of pages may wait for the same artifact.
  const emitter = new EventEmitter().setMaxListeners(0)
  return {
    announce: (id) => void emitter.emit(id),
    listen(id, listener) {
      emitter.on(id, listener)
      return () => void emitter.off(id, listener)
    },
  }
}
