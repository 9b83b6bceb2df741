/** Tells, here and on all replicas, that an artifact has changed. */
import { EventEmitter } from 'node:events'
import type { Bus } from '../shared-state/bus.ts'

export interface ArtifactChanges {
  /** Says that what can be known of the artifact may be another now. */
  announce(id: string): void
  /** Calls `listener` after every announcement of that artifact, until the function returned is called. */
  listen(id: string, listener: () => void): () => void
}

export function createArtifactChanges(bus: Bus): ArtifactChanges {
  // Any number of pages may wait for the same artifact.
  const emitter = new EventEmitter().setMaxListeners(0)
  bus.subscribe('artifact', (id) => emitter.emit(id))
  return {
    announce(id) {
      emitter.emit(id)
      bus.publish('artifact', id)
    },
    listen(id, listener) {
      emitter.on(id, listener)
      return () => void emitter.off(id, listener)
    },
  }
}
