/**
 * Runs due jobs of one kind, a limited number at a time. A lease prevents two replicas from running the same
 * job.
 */
import { unixSeconds } from '../../lib/clock.ts'
import type { Random } from '../../lib/ids.ts'
import type { JobResult } from '../../telemetry/metrics.ts'
import type { Dependencies } from '../dependencies.ts'
import {
  findNextDue,
  type JobKind,
  type JobRow,
  renewJob,
  returnJob,
  type TakenJob,
  takeJob,
} from './store.ts'

/** Seconds without a renewal after which another runner can take the job. */
const LEASE_SECONDS = 30
const RENEW_EVERY_MS = 10_000
/** Polling interval; a poll finds jobs whose notification was lost, and retries after a failed query. */
const POLL_EVERY_MS = 5_000

export type StopReason = 'closing' | 'removed' | 'lost'

/**
 * Runs a job, then deletes its row or returns it to the queue. A rejection counts as a failure, and the queue
 * retries the job, unless the signal has aborted.
 */
export type Work = (job: JobRow, signal: AbortSignal) => Promise<void>

export interface RunnerOptions {
  readonly kind: JobKind
  readonly atOnce: number
  readonly work: Work
  onFailure(error: unknown, job: JobRow): void
}

type RunnerDeps = Pick<Dependencies, 'db' | 'clock' | 'random' | 'log' | 'metrics' | 'tracing'>

export function createRunner(deps: RunnerDeps, options: RunnerOptions) {
  const { db, clock, log } = deps
  const { kind, atOnce } = options
  const running = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>()
  let isClosed = false
  let isWakeRequested = false
  let polling: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  /** Starts due jobs and returns the delay until the next poll, in milliseconds. */
  async function poll(): Promise<number> {
    while (running.size < atOnce && !isClosed) {
      const now = unixSeconds(clock)
      const job = await takeJob(db, kind, { now, until: now + LEASE_SECONDS, running: [...running.keys()] })
      if (job === undefined) break
      startJob(job)
    }
    if (running.size >= atOnce || isClosed) return POLL_EVERY_MS
    const nextAt = await findNextDue(db, kind, [...running.keys()])
    const pauseMs = nextAt === undefined ? POLL_EVERY_MS : nextAt * 1000 - clock.now()
    return Math.min(Math.max(pauseMs, 1), POLL_EVERY_MS)
  }

  async function pollUntilIdle(): Promise<void> {
    let pauseMs = POLL_EVERY_MS
    try {
      do {
        isWakeRequested = false
        pauseMs = await poll()
      } while (isWakeRequested)
    } catch (error) {
      log.warn({ err: error, kind }, 'failed to query for due jobs')
    }
    polling = undefined
    if (!isClosed) timer = setTimeout(wake, pauseMs).unref()
  }

  function wake(): void {
    isWakeRequested = true
    if (isClosed || polling !== undefined) return
    clearTimeout(timer)
    polling = pollUntilIdle()
  }

  function startJob(job: JobRow): void {
    const stop = new AbortController()
    const ended = doJob(deps, options, job, stop)
      .catch((error) => log.warn({ err: error, kind, blob: job.blob }, 'failed to return a job to the queue'))
      .finally(() => {
        running.delete(job.blob)
        wake()
      })
    running.set(job.blob, { stop, ended })
  }

  return {
    wake,
    async stop(blob: string): Promise<void> {
      const one = running.get(blob)
      one?.stop.abort('removed' satisfies StopReason)
      await one?.ended
    },
    async close(): Promise<void> {
      isClosed = true
      clearTimeout(timer)
      await polling
      for (const { stop } of running.values()) stop.abort('closing' satisfies StopReason)
      await Promise.all([...running.values()].map(({ ended }) => ended))
    },
  }
}

async function doJob(
  deps: RunnerDeps,
  { work, onFailure }: RunnerOptions,
  job: JobRow,
  stop: AbortController,
): Promise<void> {
  const { db, clock, random } = deps
  const stopRenewing = keepRenewing(deps, job, stop)
  const ended = instrumentJob(deps, job)
  try {
    await work(job, stop.signal)
    ended('done')
  } catch (error) {
    ended(stop.signal.aborted ? 'stopped' : 'failed')
    const now = unixSeconds(clock)
    if (stop.signal.aborted) {
      if (stop.signal.reason === 'closing') await returnJob(db, job, { next_at: now })
      return
    }
    onFailure(error, job)
    const failures = job.failures + 1
    await returnJob(db, job, { failures, next_at: now + backOffSeconds(failures, random) })
  } finally {
    stopRenewing()
  }
}

/** Counts and traces one attempt. Call the returned function when the attempt ends. */
function instrumentJob({ clock, metrics, tracing }: RunnerDeps, job: JobRow): (result: JobResult) => void {
  const end = metrics.jobBegins(job.kind, () => clock.monotonic())
  const attempt = job.failures + job.refusals + 1
  const attributes = { 'parley.job.kind': job.kind, 'parley.job.attempt': attempt }
  const span = tracing?.beginJob(job.blob, `job ${job.kind}`, attributes)
  return (result) => {
    end(result)
    span?.set({ 'parley.job.result': result })
    if (result === 'failed') span?.fail(result)
    span?.end()
  }
}

function keepRenewing({ db, clock, log }: RunnerDeps, job: TakenJob, stop: AbortController): () => void {
  const renew = async () => {
    if (!(await renewJob(db, job, unixSeconds(clock) + LEASE_SECONDS)))
      stop.abort('lost' satisfies StopReason)
  }
  const timer = setInterval(() => {
    renew().catch((error) => log.warn({ err: error, kind: job.kind }, 'failed to renew the lease of a job'))
  }, RENEW_EVERY_MS).unref()
  return () => clearInterval(timer)
}

const FIRST_SECONDS = 1
const LONGEST_SECONDS = 600

/**
 * Returns the retry delay in whole seconds. It doubles with each failure, up to 10 minutes, minus random
 * jitter of at most half.
 */
export function backOffSeconds(failures: number, random: Random): number {
  const whole = Math.min(FIRST_SECONDS * 2 ** (failures - 1), LONGEST_SECONDS)
  const share = (random(1)[0] ?? 0) / 255
  return Math.max(FIRST_SECONDS, Math.round(whole * (0.5 + share / 2)))
}
