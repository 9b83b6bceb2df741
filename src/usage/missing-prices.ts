/** Reports called models without a price to the operator. */
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import { dayOf } from './days.ts'

/** Maximum number of reports in a day, because clients may send any model id to some providers. */
const MOST_REPORTS = 200

interface MissingPriceDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
  /** Stores the event; other processes may report the same model. */
  readonly outbox: { reportMissingPrice(provider: string, model: string): Promise<void> }
}

/** Reports each model once a day in this process. */
export class MissingPrices {
  private readonly deps: MissingPriceDeps
  private day = ''
  private readonly reported = new Set<string>()
  private writing: Promise<void> = Promise.resolve()

  constructor(deps: MissingPriceDeps) {
    this.deps = deps
  }

  /** Does not delay the call. */
  report(provider: string, model: string): void {
    const { clock, log, outbox } = this.deps
    const day = dayOf(clock.now())
    if (day !== this.day) this.reported.clear()
    this.day = day
    const id = `${provider}/${model}`
    if (this.reported.has(id) || this.reported.size >= MOST_REPORTS) return
    this.reported.add(id)
    const written = outbox.reportMissingPrice(provider, model).catch((error: unknown) => {
      log.warn({ err: error, provider, model }, 'could not report a model without a price')
      // The next call reports it again.
      this.reported.delete(id)
    })
    this.writing = Promise.all([this.writing, written]).then(() => {})
  }

  /** Resolves when all reports so far are stored. */
  flush(): Promise<void> {
    return this.writing
  }
}
