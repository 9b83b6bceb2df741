/** Everything one service counts. Two services of one process count apart. Decision: 3 (`/metrics`). */
import type { Reason } from '../lib/errors.ts'
import { type Count, Counts, jobBounds, type Meter, requestBounds, type Spread, Spreads } from './counters.ts'
import { type IsListed, ModelMeters, OTHER } from './model-metrics.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', OTHER]

const methodIndexes = new Map(methods.map((method, index) => [method, index]))

/** The first is of those who left before they were answered. */
const statuses = ['left', '1xx', '2xx', '3xx', '4xx', '5xx']

/** The times of one operation. */
export class RequestMeter {
  /** As the table of operations calls it. */
  readonly name: string
  private readonly times: Spreads
  private readonly cells: (Spread | undefined)[] = []

  constructor(name: string, times: Spreads) {
    this.name = name
    this.times = times
  }

  /** A request has ended; without a status its caller left before there was one. */
  ended(method: string, status: number | undefined, durationMs: number): void {
    const kind = status === undefined ? 0 : Math.min(Math.floor(status / 100), statuses.length - 1)
    const methodIndex = methodIndexes.get(method) ?? methods.length - 1
    const at = methodIndex * statuses.length + kind
    const cell =
      this.cells[at] ?? this.times.of(this.name, methods[methodIndex] as string, statuses[kind] as string)
    this.cells[at] = cell
    cell.observe(durationMs / 1000)
  }
}

/** The times of all operations. Whoever asks for one names it as the table of operations does, never as a caller wrote it. */
export class RequestMeters {
  readonly meters: readonly Meter[]
  /** Of whatever is no operation: pages, health, unknown paths. */
  readonly other: RequestMeter
  private readonly times = new Spreads({
    name: 'parley_http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labels: ['operation', 'method', 'status'],
    bounds: requestBounds,
  })
  private readonly known = new Map<string, RequestMeter>()

  constructor() {
    this.meters = [this.times]
    this.other = this.of(OTHER)
  }

  of(operation: string): RequestMeter {
    const known = this.known.get(operation)
    if (known !== undefined) return known
    const made = new RequestMeter(operation, this.times)
    this.known.set(operation, made)
    return made
  }
}

/** Which bound a call has met. */
export type Limit = 'requests' | 'authentication' | 'streams'

/** How a job ended here: `stopped` ones are gone on with elsewhere, or their upload was removed. */
export type JobResult = 'done' | 'failed' | 'stopped'

/** What rooms and doors count in. */
export class Metrics {
  readonly requests = new RequestMeters()
  readonly models: ModelMeters
  readonly openStreams: Count
  readonly uploads: { readonly created: Count; readonly completed: Count; readonly receivedBytes: Count }
  private readonly failures = new Counts({
    name: 'parley_request_failures_total',
    help: 'Calls that were refused or failed, by the code of their error.',
    labels: ['reason'],
  })
  private readonly limited = new Counts({
    name: 'parley_limited_total',
    help: 'Calls that were refused because of a limit.',
    labels: ['limit'],
  })
  private readonly streams = new Counts({
    name: 'parley_streams_open',
    help: 'Event streams that are open: answers of models, and those that follow an artifact.',
    isGauge: true,
  })
  private readonly backendErrors = new Counts({
    name: 'parley_backend_errors_total',
    help: 'Calls of backends that failed, each attempt counted.',
    labels: ['provider', 'reason'],
  })
  private readonly createdUploads = new Counts({
    name: 'parley_uploads_created_total',
    help: 'Uploads that were begun.',
  })
  private readonly completedUploads = new Counts({
    name: 'parley_uploads_completed_total',
    help: 'Uploads whose last byte has come.',
  })
  private readonly failedUploads = new Counts({
    name: 'parley_uploads_failed_total',
    help: 'Uploads that came to nothing: a wrong checksum, dangerous content, or nobody went on with them.',
    labels: ['reason'],
  })
  private readonly uploadedBytes = new Counts({
    name: 'parley_upload_received_bytes_total',
    help: 'Bytes of uploads that were written down.',
  })
  private readonly runningJobs = new Counts({
    name: 'parley_jobs_running',
    help: 'Jobs under way in this process.',
    labels: ['kind'],
    isGauge: true,
  })
  private readonly jobTimes = new Spreads({
    name: 'parley_job_duration_seconds',
    help: 'Time that one try of a job took.',
    labels: ['kind', 'result'],
    bounds: jobBounds,
  })
  private readonly hooks = new Counts({
    name: 'parley_hooks_total',
    help: 'Calls of onUploadComplete that have ended.',
    labels: ['result'],
  })

  constructor(isListed: IsListed) {
    this.models = new ModelMeters(isListed)
    this.openStreams = this.streams.of()
    this.uploads = {
      created: this.createdUploads.of(),
      completed: this.completedUploads.of(),
      receivedBytes: this.uploadedBytes.of(),
    }
  }

  /** What is counted as it happens. */
  get meters(): readonly Meter[] {
    return [
      ...this.requests.meters,
      ...[this.failures, this.limited, this.streams],
      ...this.models.meters,
      ...[this.backendErrors, this.createdUploads, this.completedUploads, this.failedUploads],
      ...[this.uploadedBytes, this.runningJobs, this.jobTimes, this.hooks],
    ]
  }

  callFailed(reason: Reason): void {
    this.failures.of(reason).add()
  }

  callLimited(limit: Limit): void {
    this.limited.of(limit).add()
  }

  /** `reason` is one of a few: what a backend says itself is no label. */
  backendFailed(provider: string, reason: string): void {
    this.backendErrors.of(provider, reason).add()
  }

  uploadFailed(reason: 'checksum' | 'dangerous' | 'expired', count = 1): void {
    this.failedUploads.of(reason).add(count)
  }

  /** A try of a job begins; the function returned ends it, once. */
  jobBegins(kind: 'convert' | 'hook', nowMs: () => number): (result: JobResult) => void {
    const startedMs = nowMs()
    const running = this.runningJobs.of(kind)
    running.add()
    return (result) => {
      running.add(-1)
      this.jobTimes.of(kind, result).observe((nowMs() - startedMs) / 1000)
      if (kind === 'hook' && result !== 'stopped')
        this.hooks.of(result === 'done' ? 'delivered' : 'failed').add()
    }
  }
}
