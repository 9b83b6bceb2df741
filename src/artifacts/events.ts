/** Tells, here and on all replicas, that an artifact has changed. */
import { EventEmitter } from 'node:events'
import type { ServiceError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'
import type { Bus } from '../replicas/bus.ts'
import { artifactNotFound, takenOver } from './access.ts'

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

/** Whoever was asked has stopped by then, or hangs. */
const STOPPED_WITHIN_MS = 5_000

/** Whoever is asked on another replica says by then that they are stopping, or is gone. */
const HEARD_WITHIN_MS = 1_000

/** Why somebody who writes is to stop, and what they are told. */
const reasons = { 'taken-over': takenOver, removed: artifactNotFound } satisfies Record<
  string,
  () => ServiceError
>

export type StopReason = keyof typeof reasons

function isStopReason(reason: string): reason is StopReason {
  return Object.hasOwn(reasons, reason)
}

/** What somebody who writes has; `stopped` aborts when they are to stop. */
export interface Hold {
  readonly stopped: AbortSignal
  /** Tells that they have. */
  end(): void
}

export interface UploadsUnderWay {
  hold(id: string): Hold
  /** Asks whoever writes into that upload here to stop, and waits until they have, or for a while; false when nobody did. */
  stop(id: string, reason: StopReason): Promise<boolean>
  /**
   * Asks the same of the other replicas, and waits until a writer of theirs has ended, or for a while; not at all where there are no
   * others, or somebody here is writing into it. True when nobody is: all of them were asked, and none said a word.
   */
  stopElsewhere(id: string, reason: StopReason): Promise<boolean>
}

export function createUploadsUnderWay(bus: Bus): UploadsUnderWay {
  const holders = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>()
  const [stopsElsewhere, endsElsewhere] = [new EventEmitter(), new EventEmitter()]
  for (const heard of [stopsElsewhere, endsElsewhere]) heard.setMaxListeners(0)
  bus.subscribe('upload-stopping', (id) => stopsElsewhere.emit(id))
  bus.subscribe('upload-ended', (id) => endsElsewhere.emit(id))
  bus.subscribe('stop-upload', (text) => {
    const [reason = '', id = ''] = text.split(' ')
    // A later version may know more reasons; the bus logs what is thrown here.
    if (!isStopReason(reason)) throw new Error('this version does not know that reason to stop an upload')
    const holder = holders.get(id)
    if (holder === undefined) return
    bus.publish('upload-stopping', id)
    holder.stop.abort(reasons[reason]())
  })
  return {
    hold(id) {
      const stop = new AbortController()
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      const holder = { stop, ended }
      holders.set(id, holder)
      return {
        stopped: stop.signal,
        end() {
          if (holders.get(id) === holder) holders.delete(id)
          resolve()
          bus.publish('upload-ended', id)
        },
      }
    },
    async stop(id, reason) {
      const holder = holders.get(id)
      if (holder === undefined) return false
      holder.stop.abort(reasons[reason]())
      await within(STOPPED_WITHIN_MS, holder.ended, () => {})
      return true
    },
    async stopElsewhere(id, reason) {
      if (!bus.reachesOthers || holders.has(id)) return false
      const [ended, stopping] = [hear(endsElsewhere, id), hear(stopsElsewhere, id)]
      bus.publish('stop-upload', `${reason} ${id}`)
      await within(HEARD_WITHIN_MS, Promise.race([ended.heard, stopping.heard]), () => {})
      const isSilent = !ended.isHeard() && !stopping.isHeard()
      if (!isSilent) await within(STOPPED_WITHIN_MS, ended.heard, () => {})
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
