/** Publishes changes to artifacts to all replicas, and allows one writer per upload. */
import { EventEmitter, once } from 'node:events'
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import type { ServiceError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'
import type { Bus } from '../replicas/bus.ts'
import { artifactNotFound, leaseStolen, locked, uploadDeleted } from './access.ts'
import {
  acquireLease,
  acquireReleasedLease,
  findUploadRow,
  stealLease,
  type Upload,
  type UploadRow,
  updateLeased,
} from './store.ts'

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

/**
 * Maps each reason for stopping a writer, as sent between replicas, to the error that the writer's client
 * receives.
 */
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
    // A replica with a newer version may send other reasons. The bus logs this error.
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
     * Stops this process's writer and waits up to five seconds for it to finish. Returns false if there is no
     * writer.
     */
    async stop(id: string, reason: StopReason): Promise<boolean> {
      const upload = uploads.get(id)
      if (upload === undefined) return false
      upload.stop.abort(reasons[reason]())
      await isWithin(STOP_TIMEOUT_MS, upload.ended)
      return true
    },
    /**
     * Asks the other replicas to stop the upload's writer. Returns true if there are other replicas, none of
     * them replied, and this process has no writer either.
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

/** Seconds without a renewal after which another request can acquire the lease. */
const LEASE_SECONDS = 30
const RENEW_EVERY_MS = 10_000
const RETRY_RELEASE_EVERY_MS = 1_000

interface LeaseDeps {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly artifacts: { readonly activeUploads: ActiveUploads }
}

type UploadLease = ReturnType<typeof startRenewing>

/**
 * Stops the upload's writer on any replica and acquires the lease, so that a reconnecting client does not
 * have to wait until its old connection times out. @throws ServiceError `not_found` if the upload was
 * deleted; `locked` if the writer does not stop.
 */
export async function acquireOrStealLease(
  deps: LeaseDeps,
  upload: Upload & { readonly id: string },
): Promise<UploadLease> {
  const { activeUploads } = deps.artifacts
  await activeUploads.stop(upload.id, 'taken-over')
  const lease = await tryAcquireLease(deps, upload)
  if (lease !== undefined) return lease
  const seen = await findUploadRow(deps.db, upload)
  if (seen === undefined) throw uploadDeleted()
  const isGone = await activeUploads.stopOnOtherReplicas(upload.id, 'taken-over')
  // The writer's replica is dead or unreachable. If it recovers, the fence makes its writes fail.
  if (isGone) {
    const row = await stealLease(deps.db, seen, leaseEnd(deps))
    if (row !== undefined) return startRenewing(deps, row, false)
  }
  return acquireUploadLease(deps, upload)
}

/** @throws ServiceError `locked` if another request is writing, or the upload is complete or deleted. */
export async function acquireUploadLease(
  deps: LeaseDeps,
  upload: Upload & { readonly id: string },
): Promise<UploadLease> {
  const lease = await tryAcquireLease(deps, upload)
  if (lease === undefined) throw locked('Another request is writing to this upload; try again later.')
  return lease
}

async function tryAcquireLease(deps: LeaseDeps, upload: Upload): Promise<UploadLease | undefined> {
  const released = await acquireReleasedLease(deps.db, upload, leaseEnd(deps))
  if (released !== undefined) return startRenewing(deps, released, true)
  const expired = await acquireLease(deps.db, upload, unixSeconds(deps.clock), leaseEnd(deps))
  return expired && startRenewing(deps, expired, false)
}

function leaseEnd({ clock }: LeaseDeps): number {
  return unixSeconds(clock) + LEASE_SECONDS
}

function startRenewing(deps: LeaseDeps, row: UploadRow, isPreviousDone: boolean) {
  const { db, artifacts } = deps
  const registration = artifacts.activeUploads.register(row.id)
  const onFailure = (error: unknown) =>
    deps.log.warn({ err: error, artifactId: row.id }, 'failed to renew the lease of an upload')
  const renewing = setInterval(() => {
    updateLeased(db, row, { lease_until: leaseEnd(deps) }).catch(onFailure)
  }, RENEW_EVERY_MS).unref()
  return {
    /** The upload as it was when the lease was acquired, including the lease's fence. */
    row,
    /**
     * Whether the previous holder released the lease. If not, it may still be writing bytes, but cannot
     * record them.
     */
    isPreviousDone,
    /** Aborts when another request takes over or deletes the upload. */
    stopped: registration.stopped,
    async release(): Promise<void> {
      clearInterval(renewing)
      const release = () => updateLeased(db, row, { lease_until: null })
      await release().catch((error) => {
        onFailure(error)
        releaseLater(release)
      })
      registration.end()
    },
  }
}

/** Retries a failed release, so that clients can resume before the lease expires. */
function releaseLater(release: () => Promise<unknown>): void {
  let tries = 0
  const timer = setInterval(() => {
    tries += 1
    if (tries === LEASE_SECONDS) clearInterval(timer)
    release().then(
      () => clearInterval(timer),
      () => {},
    )
  }, RETRY_RELEASE_EVERY_MS).unref()
}
