/** Starts the soak test's actions at an even pace and in random order. */
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { createRandom } from '../support/random.ts'
import { actions, convertPicture } from './actions.ts'
import type { World } from './world.ts'

/** The counts for one kind of action. */
export interface Tally {
  begun: number
  failed: number
  /** The message of the first failure. */
  failure: string | undefined
}

/** New actions are skipped while this many are running. */
const MAX_CONCURRENT = 500
const MAX_BEHIND_MS = 2_000
const PICTURE = 'picture, converted'

export class Traffic {
  /** The pace in actions per second. */
  perSecond: number
  /** The number of actions that were skipped because too many were running or were overdue. */
  skipped = 0
  /** The number of completed actions, including failed ones. */
  ended = 0
  readonly tallies = new Map<string, Tally>()
  private readonly world: World
  private readonly random = createRandom(9)
  private readonly running = new Set<Promise<void>>()
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

  /** Stops starting actions; resolves when all running actions have completed. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await this.loops
    await Promise.all(this.running)
  }

  private async keepPace(): Promise<void> {
    let dueMs = performance.now()
    while (!this.stopping.signal.aborted) {
      dueMs += 1e3 / this.perSecond
      const aheadMs = dueMs - performance.now()
      // Yields to the event loop even when behind schedule, so that responses are processed.
      await (aheadMs > 1 ? wait(aheadMs) : nextTurn())
      const name = this.draw()
      const isTooMuch = this.running.size >= MAX_CONCURRENT || aheadMs < -MAX_BEHIND_MS
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
        this.running.delete(running)
      })
    this.running.add(running)
  }

  /** Returns a random action's name; each hundred calls return every action `share` times. */
  private draw(): string {
    if (this.deck.length === 0) {
      this.deck = Object.entries(actions).flatMap(([name, { share }]) => new Array<string>(share).fill(name))
    }
    const [name = ''] = this.deck.splice(Math.floor(this.random() * this.deck.length), 1)
    return name
  }
}

/** Renders an error with its causes, because `fetch` puts the reason in `cause`. */
function describe(error: Error): string {
  const causes: string[] = []
  for (let at: unknown = error; at instanceof Error; at = at.cause) causes.push(String(at))
  return causes.join(', because of ')
}
