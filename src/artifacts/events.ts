/** Tells, here and on all replicas, that an artifact has changed. */
import { EventEmitter } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { ServiceError } from '../lib/errors.ts'
import type { Bus } from '../replicas/bus.ts'
import { artifactNotFound, leaseStolen } from './access.ts'

export interface ArtifactChanges {
  /** Says that what can be known of the artifact may be another now. */
  publish(id: string): void
  /** Calls `listener` after every announcement of that artifact, until the function returned is called. */
  subscribe(id: string, listener: () => void): () => void
}

export function createArtifactChanges(bus: Bus): ArtifactChanges {
  // Any number of pages may wait for the same artifact.
  const emitter = new EventEmitter().setMaxListeners(0)
  bus.subscribe('artifact', (id) => emitter.emit(id))
  return {
    publish(id) {
      emitter.emit(id)
      bus.publish('artifact', id)
    },
    subscribe(id, listener) {
      emitter.on(id, listener)
      return () => void emitter.off(id, listener)
    },
  }
}

/** Whoever was asked has stopped by then, or hangs. */
const STOP_TIMEOUT_MS = 5_000

/** Whoever is asked on another replica says by then that they are stopping, or is gone. */
const REPLY_TIMEOUT_MS = 1_000

/** Why somebody who writes is to stop, and what they are told. */
const reasons = { 'taken-over': leaseStolen, removed: artifactNotFound } satisfies Record<
  string,
  () => ServiceError
>

export type StopReason = keyof typeof reasons

function isStopReason(reason: string): reason is StopReason {
  return Object.hasOwn(reasons, reason)
}

/** What somebody who writes has; `stopped` aborts when they are to stop. */
export interface RegisteredUpload {
  readonly stopped: AbortSignal
  /** Tells that they have. */
  end(): void
}

export interface ActiveUploads {
  register(id: string): RegisteredUpload
  /** Asks whoever writes into that upload here to stop, and waits until they have, or for a while; false when nobody did. */
  stop(id: string, reason: StopReason): Promise<boolean>
  /**
   * Asks the same of the other replicas, and waits until a writer of theirs has ended, or for a while; not at all where there are no
   * others, or somebody here is writing into it. True when nobody is: all of them were asked, and none said a word.
   */
  stopOnOtherReplicas(id: string, reason: StopReason): Promise<boolean>
}

export function createActiveUploads(bus: Bus): ActiveUploads {
  const uploads = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>()
  const [remoteStops, remoteEnds] = [new EventEmitter(), new EventEmitter()]
  for (const heard of [remoteStops, remoteEnds]) heard.setMaxListeners(0)
  bus.subscribe('upload-stopping', (id) => remoteStops.emit(id))
  bus.subscribe('upload-ended', (id) => remoteEnds.emit(id))
  bus.subscribe('stop-upload', (text) => {
    const [reason = '', id = ''] = text.split(' ')
    // A later version may know more reasons; the bus logs what is thrown here.
    if (!isStopReason(reason)) throw new Error('this version does not know that reason to stop an upload')
    const upload = uploads.get(id)
    if (upload === undefined) return
    bus.publish('upload-stopping', id)
    upload.stop.abort(reasons[reason]())
  })
  return {
    register(id) {
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
    async stop(id, reason) {
      const upload = uploads.get(id)
      if (upload === undefined) return false
      upload.stop.abort(reasons[reason]())
      await withTimeLimit(upload.ended)
      return true
    },
    async stopOnOtherReplicas(id, reason) {
      if (!bus.reachesOthers || uploads.has(id)) return false
      const [ended, stopping] = [hear(remoteEnds, id), hear(remoteStops, id)]
      bus.publish('stop-upload', `${reason} ${id}`)
      await withTimeLimit(Promise.race([ended.heard, stopping.heard]), REPLY_TIMEOUT_MS)
      const isSilent = !ended.isHeard() && !stopping.isHeard()
      if (!isSilent) await withTimeLimit(ended.heard)
      ended.leave()
      stopping.leave()
      return isSilent
    },
  }
}

/** Listens for one word about an upload. */
function hear(words: EventEmitter, id: string) {
  const { promise: heard, resolve } = Promise.withResolvers<void>()
  let isHeard = false
  const listener = () => {
    isHeard = true
    resolve()
  }
  words.once(id, listener)
  return { heard, isHeard: () => isHeard, leave: () => void words.off(id, listener) }
}

async function withTimeLimit(ended: Promise<void>, ms = STOP_TIMEOUT_MS): Promise<void> {
  const enough = new AbortController()
  const overdue = wait(ms, undefined, { signal: enough.signal }).catch(() => {})
  await Promise.race([ended, overdue])
  enough.abort()
}
