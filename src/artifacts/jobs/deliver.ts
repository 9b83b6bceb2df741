/** Calls `onUploadComplete` for one complete upload; the job queue retries failures. */
import { ServiceError } from '../../lib/errors.ts'
import { depthOf } from '../../lib/formats/json.ts'
import { wholeOf } from '../../storage/blobs.ts'
import type { Dependencies } from '../dependencies.ts'
import { type OnUploadComplete, toCompletedUpload, type UploadHooks } from '../metadata.ts'
import { findUploadRow, type UploadRow, updateUpload } from '../store.ts'
import { type FinishingDeps, finish } from './finish.ts'
import type { Work } from './queue.ts'

/** A handler that needs more than ten minutes must use its own queue. */
const HANDLER_MS = 600_000

interface DeliveryDeps extends FinishingDeps, Pick<Dependencies, 'clock'> {
  readonly onUploadComplete: OnUploadComplete
}

export function createDeliveryWork(deps: DeliveryDeps): Work {
  return async (job, signal) => {
    const row = await findUploadRow(deps.db, job)
    if (row === undefined) return
    await deliver(deps, row, signal)
    await finish(deps, job, row, (trx) => updateUpload(trx, row, { acknowledged: 1 }))
  }
}

async function deliver(deps: DeliveryDeps, row: UploadRow, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const { clock, onUploadComplete } = deps
  const over = new AbortController()
  const ends = AbortSignal.any([signal, over.signal])
  const outcomes = createOutcomes(deps, row)
  const hooks: UploadHooks = Object.freeze({
    signal: ends,
    recordOutcome(value: unknown) {
      assertRunning(ends)
      return outcomes.record(value)
    },
    async open() {
      assertRunning(ends)
      const bytes = await deps.store.blobs.open(row.blob, wholeOf(row.received_bytes))
      ends.addEventListener('abort', () => void bytes.destroy(), { once: true })
      return bytes
    },
  })
  const handle = async () => void (await onUploadComplete(toCompletedUpload(row), hooks))
  const tooLong = async () => {
    await clock.wait(HANDLER_MS, ends)
    throw new Error(`onUploadComplete took longer than ${HANDLER_MS / 1000} seconds`)
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
function createOutcomes({ db, changes }: DeliveryDeps, row: UploadRow) {
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
