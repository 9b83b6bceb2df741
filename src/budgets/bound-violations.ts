/** Reports violated bounds to the operator, and measures the answers of the model in bytes for a day. */
import type { Logger } from 'pino'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { BoundViolation, EventOutbox } from './events/outbox.ts'
import type { ModelMeters } from './model-meters.ts'

const METERED_SECONDS = 86_400

interface ViolationDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'boundViolated'>
  readonly outbox: Pick<EventOutbox, 'reportBoundViolation'>
  readonly meters: ModelMeters
}

export class BoundViolations {
  private readonly deps: ViolationDeps
  private writing: Promise<void> = Promise.resolve()

  constructor(deps: ViolationDeps) {
    this.deps = deps
  }

  /** Applies to the next request in this process, and on all replicas as soon as it is stored. */
  report(violation: BoundViolation): void {
    const { clock, log, metrics, meters } = this.deps
    const { provider, model, kind, bound, reported } = violation
    metrics.boundViolated(provider, model, kind)
    log.warn(
      { provider, model, kind, bound, reported },
      'the provider exceeded the bound of a request; budgets measure its answers in bytes for 24 hours',
    )
    const until = unixSeconds(clock) + METERED_SECONDS
    meters.set({ provider, model, metering: 'bytes', reason: kind, until })
    const written = this.store(violation).catch((error: unknown) =>
      log.warn({ err: error, provider, model }, 'could not report a violated bound'),
    )
    this.writing = Promise.all([this.writing, written]).then(() => {})
  }

  /** Resolves when all reports so far are stored. */
  flush(): Promise<void> {
    return this.writing
  }

  private async store(violation: BoundViolation): Promise<void> {
    const { meters, outbox } = this.deps
    await meters.settled()
    // Notifies the other replicas only when they can read it.
    meters.invalidate()
    await outbox.reportBoundViolation(violation)
  }
}
