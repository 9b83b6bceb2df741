/** Processes complete uploads: converts them and calls `onUploadComplete`. */
import type { Bus } from '../replicas/bus.ts'
import { createActiveUploads, createArtifactChanges } from './coordination.ts'
import type { ArtifactService, Dependencies, Processing } from './dependencies.ts'
import { type ConversionDeps, createConversionWork } from './jobs/convert.ts'
import { createDeliveryWork } from './jobs/deliver.ts'
import { createRunner, type RunnerOptions } from './jobs/queue.ts'
import { countJobs } from './jobs/store.ts'

interface ProcessingDeps extends ConversionDeps, Pick<Dependencies, 'onUploadComplete' | 'tracing'> {
  readonly bus: Bus
}

const CONVERSIONS_AT_ONCE = 2
const DELIVERIES_AT_ONCE = 4
const REPORT_FAILURES_EVERY_MS = 5_000

function createProcessing(deps: ProcessingDeps): Processing {
  const { db, log, bus, onUploadComplete } = deps
  const conversions = createRunner(deps, {
    kind: 'convert',
    atOnce: CONVERSIONS_AT_ONCE,
    work: createConversionWork(deps),
    onFailure(error, { blob, failures }) {
      const what = { err: error, blob, failures: failures + 1 }
      log.warn(what, 'failed to convert an upload; retrying')
    },
  })
  // Uses separate queues, so that a slow handler does not delay conversions.
  const runners = [conversions]
  if (onUploadComplete !== undefined) {
    runners.push(
      createRunner(deps, {
        kind: 'hook',
        atOnce: DELIVERIES_AT_ONCE,
        work: createDeliveryWork({ ...deps, onUploadComplete }),
        onFailure: createFailureReporter(deps),
      }),
    )
  }
  const wakeHere = () => {
    for (const runner of runners) runner.wake()
  }
  bus.subscribe('jobs', wakeHere)
  bus.onGap(wakeHere)
  return {
    async start() {
      wakeHere()
      if (onUploadComplete !== undefined) return
      const waiting = await countJobs(db, 'hook')
      if (waiting > 0)
        log.warn({ waiting }, 'uploads are waiting for onUploadComplete, which is not configured')
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
      // Lets other replicas continue the jobs that this one returned.
      bus.publish('jobs')
    },
  }
}

function createFailureReporter({ clock, log }: ProcessingDeps): RunnerOptions['onFailure'] {
  let reportedAtMs = Number.NEGATIVE_INFINITY
  let unreported = 0
  return (error, { blob: eventId, failures }) => {
    if (clock.monotonic() < reportedAtMs + REPORT_FAILURES_EVERY_MS) {
      unreported += 1
      return
    }
    const what = { err: error, eventId, failures: failures + 1, unreported }
    log.warn(what, 'onUploadComplete failed; retrying')
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
