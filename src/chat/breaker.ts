/** Notices models that keep failing, and lets them rest while another can answer. */
import { LRUCache } from 'lru-cache'
import type { Config } from '../config.ts'
import type { Clock } from '../lib/clock.ts'
import type { ModelRoute } from '../models/catalogue.ts'

/** How a call may go: as ever, as the one that tries whether the model is back, or not at all where there is another model. */
export type Pass = 'free' | 'probe' | 'resting'

/** What a call says of its model: a caller's mistake, a 429 and a caller who leaves say nothing. Decision: 7 (Breaker). */
export type Verdict = 'answered' | 'failed' | 'nothing'

/** More models than any installation has; ids that pass through unlisted could be without end. */
const MOST_MODELS = 1_000
/** The window moves on in this many steps. */
const SLOTS = 10

/** The breakers of a service, one for each provider and model. */
export class Breakers {
  private readonly known = new LRUCache<string, KnownBreaker>({ max: MOST_MODELS })
  private readonly limits: Config['breaker']
  private readonly clock: Pick<Clock, 'monotonic'>

  constructor(limits: Config['breaker'], clock: Pick<Clock, 'monotonic'>) {
    this.limits = limits
    this.clock = clock
  }

  /** The models that were asked so far, and whether each rests. */
  list(): { readonly provider: string; readonly model: string; readonly isResting: boolean }[] {
    return [...this.known.values()].map(({ provider, model, breaker }) => ({
      ...{ provider, model },
      isResting: breaker.isResting,
    }))
  }

  of({ backend, model }: ModelRoute): Breaker {
    const key = `${backend.name}/${model}`
    const known = this.known.get(key)
    if (known !== undefined) return known.breaker
    const breaker = new Breaker(this.limits, this.clock)
    this.known.set(key, { provider: backend.name, model, breaker })
    return breaker
  }
}

interface KnownBreaker {
  readonly provider: string
  readonly model: string
  readonly breaker: Breaker
}

/** Counts how the calls of one model end. Decision: 7 (Breaker). */
export class Breaker {
  private readonly limits: Config['breaker']
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly slots = Array.from({ length: SLOTS }, () => ({ step: -1, calls: 0, failures: 0 }))
  private restsUntilMs: number | undefined
  private isProbing = false

  constructor(limits: Config['breaker'], clock: Pick<Clock, 'monotonic'>) {
    this.limits = limits
    this.clock = clock
  }

  /** Whether the model rests, or has rested and was not found to be back. */
  get isResting(): boolean {
    return this.restsUntilMs !== undefined
  }

  /** How the next call may go; its end must be told to `settle`. */
  enter(): Pass {
    if (this.restsUntilMs === undefined) return 'free'
    if (this.isProbing || this.clock.monotonic() < this.restsUntilMs) return 'resting'
    this.isProbing = true
    return 'probe'
  }

  /** Counts a call that has begun to be answered, or has failed; once for each `enter`. */
  settle(pass: Pass, verdict: Verdict): void {
    if (pass === 'probe') this.endProbe(verdict)
    else if (pass === 'free' && verdict !== 'nothing') this.count(1, verdict === 'failed' ? 1 : 0)
  }

  /** A call that was counted as answered has failed after all. */
  breakOff(): void {
    if (this.restsUntilMs === undefined) this.count(0, 1)
  }

  private endProbe(verdict: Verdict): void {
    this.isProbing = false
    if (verdict === 'failed') this.rest()
    else if (verdict === 'answered') this.restsUntilMs = undefined
  }

  private count(calls: number, failures: number): void {
    const slot = this.currentSlot()
    slot.calls += calls
    slot.failures += failures
    if (failures > 0 && this.isFailing()) this.rest()
  }

  private currentSlot() {
    const step = this.currentStep()
    const slot = this.slots[step % SLOTS] as (typeof this.slots)[number]
    if (slot.step !== step) Object.assign(slot, { step, calls: 0, failures: 0 })
    return slot
  }

  private isFailing(): boolean {
    const oldest = this.currentStep() - SLOTS + 1
    const recent = this.slots.filter(({ step }) => step >= oldest)
    const calls = recent.reduce((sum, slot) => sum + slot.calls, 0)
    const failures = recent.reduce((sum, slot) => sum + slot.failures, 0)
    return this.limits.calls > 0 && calls >= this.limits.calls && failures * 2 >= calls
  }

  /** What was counted before says nothing of the model when it is back. */
  private rest(): void {
    this.restsUntilMs = this.clock.monotonic() + this.limits.restMs
    for (const slot of this.slots) slot.step = -1
  }

  private currentStep(): number {
    return Math.floor((this.clock.monotonic() * SLOTS) / this.limits.windowMs)
  }
}
