/** The soak's traffic: actions one by one at an even pace, in an order that chance makes, however long each takes. */
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { createRandom } from '../support/upstream-sending.ts'
import { actions, convertPicture } from './actions.ts'
import type { World } from './world.ts'

/** What became of one kind of action. */
export interface Tally {
  begun: number
  failed: number
  /** What the first failure said. */
  failure: string | undefined
}

/** A server that does not keep up is not given more, and neither is a machine that leaves the traffic itself no time. */
const MOST_AT_ONCE = 500
const MOST_BEHIND_MS = 2_000
const PICTURE = 'picture, converted'

export class Traffic {
  /** Actions a second. */
  perSecond: number
  /** Actions that were due and not begun, because too many were under way. */
  skipped = 0
  /** Actions that came to their end, good or bad. */
  ended = 0
  readonly tallies = new Map<string, Tally>()
  private readonly world: World
  private readonly random = createRandom(9)
  private readonly underWay = new Set<Promise<void>>()
  private readonly stopping = new AbortController()
  private readonly loops: Promise<unknown>
  private deck: string[] = []

  constructor(world: World, perSecond: number, pictureEveryMs: number) {
    this.world = world
    this.perSecond = perSecond
    for (const name of [...Object.keys(actions), PICTURE])
      this.tallies.set(name, { begun: 0, failed: 0, failure: undefined })
    this.loops = Promise.all([this.keepPace(), this.keepConverting(pictureEveryMs)])
  }

  /** Begins no more, and resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await this.loops
    await Promise.all(this.underWay)
  }

  private async keepPace(): Promise<void> {
    let dueMs = performance.now()
    while (!this.stopping.signal.aborted) {
      dueMs += 1e3 / this.perSecond
      const aheadMs = dueMs - performance.now()
      // Behind time too: what has come in is looked at before more is asked.
      await (aheadMs > 1 ? wait(aheadMs) : nextTurn())
      const name = this.draw()
      const isTooMuch = this.underWay.size >= MOST_AT_ONCE || aheadMs < -MOST_BEHIND_MS
      if (isTooMuch) this.skipped += 1
      else this.begin(name, actions[name]?.run ?? convertPicture)
    }
  }

  private async keepConverting(everyMs: number): Promise<void> {
    while (!this.stopping.signal.aborted) {
      this.begin(PICTURE, convertPicture)
      await wait(everyMs, undefined, { signal: this.stopping.signal }).catch(() => {})
    }
  }

  private begin(name: string, run: (world: World) => Promise<void>): void {
    const tally = this.tallies.get(name) as Tally
    tally.begun += 1
    const running = run(this.world)
      .catch((error) => {
        tally.failed += 1
        tally.failure ??= describe(error)
      })
      .finally(() => {
        this.ended += 1
        this.underWay.delete(running)
      })
    this.underWay.add(running)
  }

  /** Of each hundred, as many of a kind as its share says. */
  private draw(): string {
    if (this.deck.length === 0) {
      this.deck = Object.entries(actions).flatMap(([name, { share }]) => new Array<string>(share).fill(name))
    }
    const [name = ''] = this.deck.splice(Math.floor(this.random() * this.deck.length), 1)
    return name
  }
}

/** What failed, and why: a `fetch` only says the latter in its cause. */
function describe(error: Error): string {
  const causes: string[] = []
  for (let at: unknown = error; at instanceof Error; at = at.cause) causes.push(String(at))
  return causes.join(', because of ')
}
