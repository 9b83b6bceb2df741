/** One signal for everything that ends a backend call early: the caller leaves, or its time is up. */
import { BackendFailure } from './backend.ts'

/** Follows a caller's signal and adds two clocks of its own; `release` must be called at the end. */
export class Deadline implements Disposable {
  private readonly controller = new AbortController()
  private readonly caller: AbortSignal
  private readonly totalMs: number
  private timer: NodeJS.Timeout
  private readonly leave = () => this.controller.abort(this.caller.reason)

  /** `firstEventMs` is over all attempts; the total counts from the first event. Decision: 7 (Times). */
  constructor(caller: AbortSignal, firstEventMs: number, totalMs: number) {
    this.caller = caller
    this.totalMs = totalMs
    this.timer = this.startTimer(firstEventMs)
    if (caller.aborted) this.leave()
    else caller.addEventListener('abort', this.leave)
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  /** The backend has begun to answer: from here on only the total counts. */
  begin(): void {
    clearTimeout(this.timer)
    this.timer = this.startTimer(this.totalMs)
  }

  release(): void {
    clearTimeout(this.timer)
    this.caller.removeEventListener('abort', this.leave)
  }

  [Symbol.dispose](): void {
    this.release()
  }

  private startTimer(afterMs: number): NodeJS.Timeout {
    const expire = () =>
      this.controller.abort(new BackendFailure('timeout', `no answer within ${afterMs} ms`))
    return setTimeout(expire, afterMs)
  }
}
