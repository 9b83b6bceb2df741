/** Lets one request at a time write into an upload, whichever process it is in. Security: 2.8 (lease, fence). */

import { ServiceError } from '../errors.ts'
import { unixSeconds } from '../lib/clock.ts'
import type { Dependencies } from './dependencies.ts'
import type { ArtifactDesk } from './desk.ts'
import {
  acquireLease,
  breakLease,
  findUploadRow,
  type Upload,
  type UploadRow,
  updateLeased,
} from './store.ts'

/** Whoever does not renew it in time has lost it; until they find out, the fence shuts them out. */
const LEASE_SECONDS = 30
const RENEW_EVERY_MS = 10_000
const FREE_AGAIN_AFTER_MS = 1_000

type LeaseDeps = Pick<Dependencies, 'db' | 'clock' | 'log'> & { readonly artifacts: ArtifactDesk }

/** A lease, renewed until it is given back. */
export interface HeldLease {
  /** The upload as it was when the lease began; its fence is the lease's. */
  readonly row: UploadRow
  /** Aborts when somebody else wants the upload. */
  readonly stopped: AbortSignal
  release(): Promise<void>
}

/**
 * Takes the lease from whoever has it: a client that comes back is not kept waiting by the connection it has lost, whichever replica
 * that leads to.
 * @throws ServiceError `not_found` when the upload was removed meanwhile, `locked` when whoever is writing does not stop, or there is
 * nothing to write any more.
 */
export async function takeOverUpload(
  deps: LeaseDeps,
  upload: Upload & { readonly id: string },
): Promise<HeldLease> {
  const { underWay } = deps.artifacts
  await underWay.stop(upload.id, 'taken-over')
  const lease = await takeLease(deps, upload)
  if (lease !== undefined) return lease
  const seen = await findUploadRow(deps.db, upload)
  if (seen === undefined) throw removedMeanwhile()
  const isGone = await underWay.stopElsewhere(upload.id, 'taken-over')
  // Its replica is, or cannot be heard: then the fence shuts it out, should it come back.
  if (isGone) {
    const row = await breakLease(deps.db, seen, leaseEnd(deps))
    if (row !== undefined) return hold(deps, row)
  }
  return leaseUpload(deps, upload)
}

/** @throws ServiceError `locked` when somebody else is writing, or there is nothing to write any more. */
export async function leaseUpload(
  deps: LeaseDeps,
  upload: Upload & { readonly id: string },
): Promise<HeldLease> {
  const lease = await takeLease(deps, upload)
  if (lease === undefined) throw locked('Another request is writing into this upload; try again.')
  return lease
}

/** Undefined when somebody else has it. */
async function takeLease(deps: LeaseDeps, upload: Upload): Promise<HeldLease | undefined> {
  const row = await acquireLease(deps.db, upload, unixSeconds(deps.clock), leaseEnd(deps))
  return row === undefined ? undefined : hold(deps, row)
}

function leaseEnd({ clock }: LeaseDeps): number {
  return unixSeconds(clock) + LEASE_SECONDS
}

/** Keeps a lease that was taken until it is given back. */
function hold(deps: LeaseDeps, row: UploadRow): HeldLease {
  const { db, artifacts } = deps
  const held = artifacts.underWay.hold(row.id)
  const onFailure = (error: unknown) =>
    deps.log.warn({ err: error, artifactId: row.id }, 'a lease could not be renewed')
  const renewing = setInterval(() => {
    updateLeased(db, row, { lease_until: leaseEnd(deps) }).catch(onFailure)
  }, RENEW_EVERY_MS).unref()
  return {
    row,
    stopped: held.stopped,
    async release() {
      clearInterval(renewing)
      const free = () => updateLeased(db, row, { lease_until: null })
      await free().catch((error) => {
        onFailure(error)
        freeLater(free)
      })
      held.end()
    },
  }
}

/** With the database away: whoever goes on with the upload once it is back need not wait until the lease runs out. */
function freeLater(free: () => Promise<unknown>): void {
  let tries = 0
  const timer = setInterval(() => {
    tries += 1
    if (tries === LEASE_SECONDS) clearInterval(timer)
    free().then(
      () => clearInterval(timer),
      () => {},
    )
  }, FREE_AGAIN_AFTER_MS).unref()
}

/** What somebody is told who was writing until another client, or the same one again, went on. */
export function takenOver(): ServiceError {
  return locked('Another request goes on with this upload.')
}

/** What somebody is told who wanted to write into what is gone by now. */
export function removedMeanwhile(): ServiceError {
  return new ServiceError('not_found', 'The upload was removed meanwhile.')
}

export function locked(message: string): ServiceError {
  return new ServiceError('locked', message, { retryAfterSeconds: 1 })
}
