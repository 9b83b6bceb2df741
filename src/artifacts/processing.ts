/** Converts complete uploads and calls the host's handlers. */
import type { Bus } from '../replicas/bus.ts'
import { createActiveUploads, createArtifactChanges } from './coordination.ts'
import type { ArtifactService, Dependencies, Processing } from './dependencies.ts'
import { type ConversionDeps, createConversionWork } from './jobs/convert.ts'
import { createDeliveryWork, createEventWork } from './jobs/deliver.ts'
import { createRunner, type RunnerOptions, type Work } from './jobs/queue.ts'
import { countJobs } from './jobs/store.ts'

interface ProcessingDeps
  extends Omit<ConversionDeps, 'wakeEvents'>,
    Pick<Dependencies, 'onUploadComplete' | 'tracing'> {
  readonly bus: Bus
}

const CONVERSIONS_AT_ONCE = 2
const DELIVERIES_AT_ONCE = 4
const REPORT_FAILURES_EVERY_MS = 5_000

/**
 * Each handler has a separate queue, so that a slow handler delays neither conversions nor the other handler.
 */
function createDeliveryRunners(deps: ProcessingDeps) {
  const { onUploadComplete, onConversionEnd } = deps
  const create = (kind: 'hook' | 'converted', handler: string, work: Work) =>
    createRunner(deps, {
      ...{ kind, work },
      atOnce: DELIVERIES_AT_ONCE,
      onFailure: createFailureReporter(deps, handler),
    })
  return {
    hook:
      onUploadComplete &&
      create('hook', 'onUploadComplete', createDeliveryWork({ ...deps, onUploadComplete })),
    converted:
      onConversionEnd &&
      create('converted', 'onConversionEnd', createEventWork({ ...deps, onConversionEnd })),
  }
}

function createProcessing(deps: ProcessingDeps): Processing {
  const { db, log, bus } = deps
  const { hook, converted } = createDeliveryRunners(deps)
  const conversions = createRunner(deps, {
    kind: 'convert',
    atOnce: CONVERSIONS_AT_ONCE,
    work: createConversionWork({ ...deps, wakeEvents: () => converted?.wake() }),
    onFailure(error, { blob, failures }) {
      const what = { err: error, blob, failures: failures + 1 }
      log.warn(what, 'failed to convert an upload; retrying')
    },
  })
  const runners = [conversions, hook, converted].filter((runner) => runner !== undefined)
  const wakeHere = () => {
    for (const runner of runners) runner.wake()
  }
  bus.subscribe('jobs', wakeHere)
  bus.onGap(wakeHere)
  return {
    async start() {
      wakeHere()
      const unheard = hook === undefined ? await countJobs(db, 'hook') : 0
      if (unheard > 0)
        log.warn({ waiting: unheard }, 'uploads are waiting for onUploadComplete, which is not configured')
      const waiting = converted === undefined ? await countJobs(db, 'converted') : 0
      if (waiting > 0)
        log.warn({ waiting }, 'events are waiting for onConversionEnd, which is not configured')
    },
    wake() {
      wakeHere()
      bus.publish('jobs')
    },
    async stop(blob) {
      await Promise.all(runners.map((runner) => runner.stop(blob)))
    },
    async close() {
      await Promise.all(runners.map((runner) => runner.close()))
      // Notifies other replicas, so that they continue the jobs that this one has returned to the queue.
      bus.publish('jobs')
    },
  }
}

function createFailureReporter({ clock, log }: ProcessingDeps, handler: string): RunnerOptions['onFailure'] {
  let reportedAtMs = Number.NEGATIVE_INFINITY
  let unreported = 0
  return (error, { kind, blob, failures }) => {
    if (clock.monotonic() < reportedAtMs + REPORT_FAILURES_EVERY_MS) {
      unreported += 1
      return
    }
    const eventId = kind === 'converted' ? `${blob}-converted` : blob
    const what = { err: error, eventId, failures: failures + 1, unreported }
    log.warn(what, `${handler} failed; retrying`)
    reportedAtMs = clock.monotonic()
    unreported = 0
  }
}

export function createArtifactService(deps: Omit<ProcessingDeps, 'changes'>): ArtifactService {
  const { store, workFolder, bus } = deps
  const changes = createArtifactChanges(bus)
  const processing = createProcessing({ ...deps, changes })
  return {
    store,
    changes,
    activeUploads: createActiveUploads(bus),
    processing,
    async close() {
      await processing.close()
      await Promise.all([store.blobs.close(), workFolder.close()])
    },
  }
}
