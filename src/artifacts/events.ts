/** Publishes artifact changes and stops upload writers, both on this replica and on all others. */
import { EventEmitter, once } from 'node:events'
import type { ServiceError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'
import type { Bus } from '../replicas/bus.ts'
import { artifactNotFound, leaseStolen } from './access.ts'

export type ArtifactChanges = ReturnType<typeof createArtifactChanges>

export function createArtifactChanges(bus: Bus) {
  const emitter = new EventEmitter().setMaxListeners(0)
  bus.subscribe('artifact', (id) => emitter.emit(id))
  return {
    publish(id: string): void {
      emitter.emit(id)
      bus.publish('artifact', id)
    },
    subscribe(id: string, listener: () => void): () => void {
      emitter.on(id, listener)
      return () => void emitter.off(id, listener)
    },
  }
}

const STOP_TIMEOUT_MS = 5_000
const REPLY_TIMEOUT_MS = 1_000

/** Maps the reason for stopping a writer, as sent between replicas, to the error for its client. */
const reasons = { 'taken-over': leaseStolen, removed: artifactNotFound } satisfies Record<
  string,
  () => ServiceError
>

export type StopReason = keyof typeof reasons

function isStopReason(reason: string): reason is StopReason {
  return Object.hasOwn(reasons, reason)
}

export type ActiveUploads = ReturnType<typeof createActiveUploads>

export function createActiveUploads(bus: Bus) {
  const uploads = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>()
  const [remoteStops, remoteEnds] = [new EventEmitter(), new EventEmitter()]
  for (const emitter of [remoteStops, remoteEnds]) emitter.setMaxListeners(0)
  bus.subscribe('upload-stopping', (id) => remoteStops.emit(id))
  bus.subscribe('upload-ended', (id) => remoteEnds.emit(id))
  bus.subscribe('stop-upload', (text) => {
    const [reason = '', id = ''] = text.split(' ')
    // A newer version may send other reasons; the bus logs this error.
    if (!isStopReason(reason))
      throw new Error('unknown reason for stopping an upload, perhaps from a newer version')
    const upload = uploads.get(id)
    if (upload === undefined) return
    bus.publish('upload-stopping', id)
    upload.stop.abort(reasons[reason]())
  })
  return {
    register(id: string) {
      const stop = new AbortController()
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      const upload = { stop, ended }
      uploads.set(id, upload)
      return {
        stopped: stop.signal,
        end() {
          if (uploads.get(id) === upload) uploads.delete(id)
          resolve()
          bus.publish('upload-ended', id)
        },
      }
    },
    /**
     * Stops the writer in this process and waits for it, up to a time limit. Returns false if this process
     * has no writer.
     */
    async stop(id: string, reason: StopReason): Promise<boolean> {
      const upload = uploads.get(id)
      if (upload === undefined) return false
      upload.stop.abort(reasons[reason]())
      await isWithin(STOP_TIMEOUT_MS, upload.ended)
      return true
    },
    /**
     * Does the same on other replicas. Returns true if no live replica has the writer: other replicas
     * exist, none replied, and this process has no writer.
     */
    async stopOnOtherReplicas(id: string, reason: StopReason): Promise<boolean> {
      if (!bus.reachesOthers || uploads.has(id)) return false
      const listening = new AbortController()
      const hear = (from: EventEmitter) => once(from, id, { signal: listening.signal }).catch(() => {})
      const [ended, stopping] = [hear(remoteEnds), hear(remoteStops)]
      bus.publish('stop-upload', `${reason} ${id}`)
      const hasReplied = await isWithin(REPLY_TIMEOUT_MS, Promise.race([ended, stopping]))
      if (hasReplied) await isWithin(STOP_TIMEOUT_MS, ended)
      listening.abort()
      return !hasReplied
    },
  }
}

function isWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const resolved = promise.then(() => true)
  return within(ms, resolved, () => false)
}
