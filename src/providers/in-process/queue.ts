/** The line in front of a model that runs in this process: so many at work, so many waiting, and nobody beyond that. */
import type { Clock } from '../../lib/clock.ts'
import { BackendFailure } from '../provider.ts'

/** Requests at work and in line together. */
export const MOST_REQUESTS = 8

/** Until an answer has shown how long they take. */
const FIRST_GUESS_MS = 5_000
const LONGEST_GUESS_SECONDS = 60

/** Hands out places, numbered from 0, in the order they were asked for. */
export class Queue {
  private readonly free: number[]
  private readonly waiting: ((place: number) => void)[] = []
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
   * Does the work once there is a place for it. A caller that leaves is let go at once and no longer counted; the place is free again
   * when the work has really stopped.
   * @throws BackendFailure 429 when the line is full; the signal's reason once the signal is aborted.
   */
  async run<Result>(signal: AbortSignal, work: (place: number) => Promise<Result>): Promise<Result> {
    signal.throwIfAborted()
    if (this.requests >= MOST_REQUESTS) throw this.refuse()
    this.requests += 1
    const { promise: left, reject } = Promise.withResolvers<never>()
    // Before there is work to race with, nobody listens to it.
    left.catch(() => {})
    const leave = () => reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    try {
      const place = await this.enter(signal)
      return await Promise.race([this.occupy(place, signal, work), left])
    } finally {
      signal.removeEventListener('abort', leave)
      this.requests -= 1
    }
  }

  /** Resolves when everything under way has stopped. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.working)
  }

  private enter(signal: AbortSignal): Promise<number> {
    const place = this.free.pop()
    if (place !== undefined) return Promise.resolve(place)
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const leave = () => {
      const at = this.waiting.indexOf(take)
      if (at === -1) return
      this.waiting.splice(at, 1)
      reject(signal.reason)
    }
    const take = (freed: number) => {
      signal.removeEventListener('abort', leave)
      resolve(freed)
    }
    this.waiting.push(take)
    signal.addEventListener('abort', leave, { once: true })
    return promise
  }

  private async occupy<Result>(
    place: number,
    signal: AbortSignal,
    work: (place: number) => Promise<Result>,
  ): Promise<Result> {
    const since = this.clock.monotonic()
    // The place may have come in the moment its caller left.
    const working = signal.aborted ? Promise.reject(signal.reason) : work(place)
    this.working.add(working)
    try {
      return await working
    } finally {
      this.working.delete(working)
      this.usualMs = (3 * this.usualMs + this.clock.monotonic() - since) / 4
      this.giveBack(place)
    }
  }

  private giveBack(place: number): void {
    const next = this.waiting.shift()
    if (next === undefined) this.free.push(place)
    else next(place)
  }

  /** Nobody stands in line to stand in line: the caller is told at once when it is worth another try. */
  private refuse(): BackendFailure {
    const seconds = Math.ceil(this.usualMs / this.placeCount / 1000)
    return new BackendFailure('status', `The local model has ${MOST_REQUESTS} requests already.`, {
      status: 429,
      retryAfterSeconds: Math.min(Math.max(1, seconds), LONGEST_GUESS_SECONDS),
      isFinal: true,
    })
  }
}
