/** Limits how many requests to an in-process model run and wait. */
import type { Clock } from '../../../src/lib/clock.ts'
import { BackendFailure } from '../../../src/providers/provider.ts'

export const MOST_REQUESTS = 8

/** Estimated duration of a request before the first one has finished. */
const FIRST_GUESS_MS = 5_000
const LONGEST_GUESS_SECONDS = 60

/** Assigns slots, numbered from 0, to requests in order of arrival. */
export class Queue {
  private readonly free: number[]
  private readonly waiting: { readonly signal: AbortSignal; readonly take: (place: number) => void }[] = []
  private readonly working = new Set<Promise<unknown>>()
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly placeCount: number
  private requests = 0
  private usualMs = FIRST_GUESS_MS

  constructor(placeCount: number, clock: Pick<Clock, 'monotonic'>) {
    this.free = Array.from({ length: placeCount }, (_, place) => place)
    this.placeCount = placeCount
    this.clock = clock
  }

  /**
   * Runs `work` in a slot. An aborted request rejects immediately, but its slot stays in use until `work`
   * stops. @throws BackendFailure with status 429 if the queue is full.
   */
  async run<Result>(signal: AbortSignal, work: (place: number) => Promise<Result>): Promise<Result> {
    signal.throwIfAborted()
    if (this.requests >= MOST_REQUESTS) throw this.tooManyRequests()
    this.requests += 1
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    // Prevents an unhandled rejection if no race below is awaiting this promise.
    aborted.catch(() => {})
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const place = await (this.free.pop() ?? Promise.race([this.wait(signal), aborted]))
      return await Promise.race([this.occupy(place, signal, work), aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.requests -= 1
    }
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.working)
  }

  private wait(signal: AbortSignal): Promise<number> {
    return new Promise((take) => this.waiting.push({ signal, take }))
  }

  private async occupy<Result>(
    place: number,
    signal: AbortSignal,
    work: (place: number) => Promise<Result>,
  ): Promise<Result> {
    const since = this.clock.monotonic()
    // The signal may have aborted after the slot became free.
    const working = signal.aborted ? Promise.reject(signal.reason) : work(place)
    this.working.add(working)
    try {
      return await working
    } finally {
      this.working.delete(working)
      this.usualMs = (3 * this.usualMs + this.clock.monotonic() - since) / 4
      this.release(place)
    }
  }

  private release(place: number): void {
    let next = this.waiting.shift()
    while (next?.signal.aborted) next = this.waiting.shift()
    if (next === undefined) this.free.push(place)
    else next.take(place)
  }

  private tooManyRequests(): BackendFailure {
    const seconds = Math.ceil(this.usualMs / this.placeCount / 1000)
    return new BackendFailure(
      'status',
      `The local model is busy with ${MOST_REQUESTS} requests. Try again later.`,
      {
        status: 429,
        retryAfterSeconds: Math.min(Math.max(1, seconds), LONGEST_GUESS_SECONDS),
        isFinal: true,
      },
    )
  }
}
