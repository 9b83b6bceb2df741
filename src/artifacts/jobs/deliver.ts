/** Calls the host's handlers for one complete upload or conversion; the job queue retries failures. */
import type { Readable } from 'node:stream'
import { ServiceError } from '../../lib/errors.ts'
import { depthOf } from '../../lib/formats/json.ts'
import { wholeOf } from '../../storage/blobs.ts'
import { artifactNotFound } from '../access.ts'
import type { Dependencies } from '../dependencies.ts'
import {
  type EndedConversion,
  type OnConversionEnd,
  type OnUploadComplete,
  toCompletedUpload,
  type UploadHooks,
} from '../metadata.ts'
import { findUploadRow, type Upload, type UploadRow, updateUpload } from '../store.ts'
import { type FinishingDeps, finish } from './finish.ts'
import type { Work } from './queue.ts'
import { deleteJob } from './store.ts'

/** Timeout in milliseconds; a handler that needs longer must use its own queue. */
const HANDLER_MS = 600_000

interface DeliveryDeps extends FinishingDeps, Pick<Dependencies, 'clock'> {}

export function createDeliveryWork(
  deps: DeliveryDeps & { readonly onUploadComplete: OnUploadComplete },
): Work {
  return async (job, signal) => {
    const row = await findUploadRow(deps.db, job)
    if (row === undefined) return void (await deleteJob(deps.db, job))
    const { blob, id, received_bytes: sizeBytes } = row
    await deliver(deps, signal, {
      ...{ blob, id, handler: 'onUploadComplete' },
      open: () => deps.store.blobs.open(blob, wholeOf(sizeBytes)),
      call: (hooks) => deps.onUploadComplete(toCompletedUpload(row), hooks),
    })
    await finish(deps, job, row, (trx) => updateUpload(trx, row, { acknowledged: 1 }))
  }
}

/** Uses the stored event so that every attempt delivers the same data, even after the artifact is deleted. */
export function createEventWork(deps: DeliveryDeps & { readonly onConversionEnd: OnConversionEnd }): Work {
  return async (job, signal) => {
    const event: EndedConversion = Object.freeze(JSON.parse(job.event ?? ''))
    await deliver(deps, signal, {
      ...{ blob: job.blob, id: event.artifactId, handler: 'onConversionEnd' },
      open: () => openServed(deps, job),
      call: (hooks) => deps.onConversionEnd(event, hooks),
    })
    await deleteJob(deps.db, job)
  }
}

async function openServed({ db, store }: DeliveryDeps, upload: Upload): Promise<Readable> {
  const row = await findUploadRow(db, upload)
  if (row?.served_blob == null) throw artifactNotFound()
  return store.blobs.open(row.served_blob, wholeOf(row.served_bytes ?? 0))
}

interface Delivery extends Pick<UploadRow, 'blob' | 'id'> {
  readonly handler: string
  open(): Promise<Readable>
  call(hooks: UploadHooks): unknown
}

async function deliver(deps: DeliveryDeps, signal: AbortSignal, delivery: Delivery): Promise<void> {
  signal.throwIfAborted()
  const { clock } = deps
  const over = new AbortController()
  const ends = AbortSignal.any([signal, over.signal])
  const outcomes = createOutcomes(deps, delivery)
  const hooks: UploadHooks = Object.freeze({
    signal: ends,
    recordOutcome(value: unknown) {
      assertRunning(ends)
      return outcomes.record(value)
    },
    async open() {
      assertRunning(ends)
      const bytes = await delivery.open()
      ends.addEventListener('abort', () => void bytes.destroy(), { once: true })
      return bytes
    },
  })
  const handle = async () => void (await delivery.call(hooks))
  const tooLong = async () => {
    await clock.wait(HANDLER_MS, ends)
    throw new Error(`${delivery.handler} took longer than ${HANDLER_MS / 1000} seconds`)
  }
  try {
    await Promise.race([handle(), tooLong()])
  } finally {
    over.abort()
    await outcomes.settle()
  }
}

function assertRunning(ends: AbortSignal): void {
  if (ends.aborted) throw new ServiceError('conflict', 'This delivery of the upload has already ended.')
}

/** Writes outcomes in call order, so that the last one wins. */
function createOutcomes({ db, changes }: DeliveryDeps, row: Pick<UploadRow, 'blob' | 'id'>) {
  let writing = Promise.resolve()
  return {
    record(value: unknown): Promise<void> {
      const outcome = renderOutcome(value)
      writing = writing.then(async () => {
        if (await updateUpload(db, row, { outcome })) changes.publish(row.id)
      })
      // Prevents an unhandled rejection if the handler ignores the promise; `settle` reports the error.
      writing.catch(() => {})
      return writing
    },
    settle: () => writing,
  }
}

const MAX_BYTES = 64 * 1024
const MAX_DEPTH = 64

function renderOutcome(value: unknown): string {
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch (error) {
    throw invalidOutcome(`is not a JSON value (${error instanceof Error ? error.message : error})`)
  }
  if (json === undefined) throw invalidOutcome('is not a JSON value')
  const bytes = Buffer.from(json)
  if (bytes.length > MAX_BYTES)
    throw invalidOutcome(`must be at most ${MAX_BYTES} bytes as JSON (got ${bytes.length})`)
  if (depthOf(bytes) > MAX_DEPTH) throw invalidOutcome(`must not be nested deeper than ${MAX_DEPTH} levels`)
  return json
}

function invalidOutcome(problem: string): ServiceError {
  return new ServiceError('invalid_value', `recordOutcome: the outcome ${problem}`, { param: 'outcome' })
}
