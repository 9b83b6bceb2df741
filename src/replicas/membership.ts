/** Keeps one replica known to the others through the store, and goes without it while it is away. */

import { newId } from '../lib/ids.ts'
import type { CommonStore } from './coordination-store.ts'
import type { Dependencies } from './dependencies.ts'
import { OpenSlots } from './stream-limiter.ts'

const BEAT_EVERY_MS = 1_000
const ID_LENGTH = 16

type PresenceDeps = Pick<Dependencies, 'random' | 'log'>

/**
 * A store that fails once is away, and only this looks whether it is back: nobody else waits for it until then. A replica that comes
 * back does so under a new name, with all it has open: whatever became of the calls that failed, it does not count any more.
 */
export class Presence {
  /** What this replica has open, whether the store knows it or not. */
  readonly open = new OpenSlots()
  private readonly store: CommonStore
  private readonly deps: PresenceDeps
  private name: string
  private state: 'unknown' | 'reached' | 'away' = 'unknown'
  private replicas = 1
  private onReached = () => {}
  private beating: Promise<void> | undefined
  private timer: NodeJS.Timeout | undefined
  private isClosed = false

  constructor(store: CommonStore, deps: PresenceDeps) {
    this.store = store
    this.deps = deps
    this.name = this.newName()
  }

  /** Resolves when the store has been asked, whatever it said; `onReached` is called whenever it is reached after it was not. */
  start(onReached: () => void): Promise<void> {
    this.onReached = onReached
    this.timer = setInterval(() => void this.beat(), BEAT_EVERY_MS).unref()
    return this.beat()
  }

  get isAway(): boolean {
    return this.state !== 'reached'
  }

  /** As whom the store knows this replica at the moment. */
  get replica(): string {
    return this.name
  }

  /** What of a limit is this replica's while the store is away. */
  shareOf(limit: number): number {
    return Math.ceil(limit / this.replicas)
  }

  /** What the store answers; undefined when it is away, or is so from now on. */
  async ask<T>(question: (store: CommonStore) => Promise<T>): Promise<{ readonly answer: T } | undefined> {
    if (this.isAway) return undefined
    try {
      return { answer: await question(this.store) }
    } catch (error) {
      this.lose(error)
      return undefined
    }
  }

  /** Shows that this replica lives, or looks whether the store is back. */
  beat(): Promise<void> {
    if (this.isClosed) return Promise.resolve()
    this.beating ??= this.beatOnce()
      .catch((error) => this.lose(error))
      .finally(() => {
        this.beating = undefined
      })
    return this.beating
  }

  async close(): Promise<void> {
    clearInterval(this.timer)
    // What was said last may have been lost: there is no later.
    if (this.isAway) await this.beat()
    this.isClosed = true
    await this.beating
    await this.ask((store) => store.leave(this.name))
  }

  private async beatOnce(): Promise<void> {
    const replicas = this.isAway ? undefined : await this.store.beat(this.name)
    if (replicas === undefined) await this.register()
    else this.replicas = replicas
  }

  private async register(): Promise<void> {
    const arrival = { replica: this.newName(), former: this.name, open: this.open.snapshot() }
    const replicas = await this.store.register(arrival)
    // A store that has lost what it knew hears of the others within a second.
    this.replicas = Math.max(this.replicas, replicas)
    this.name = arrival.replica
    if (this.state === 'away') this.deps.log.info('what replicas share is back: limits hold over all of them')
    this.state = 'reached'
    // What was taken and given back meanwhile.
    const now = this.open.snapshot()
    for (const key of new Set([...arrival.open.keys(), ...now.keys()])) {
      const by = (now.get(key) ?? 0) - (arrival.open.get(key) ?? 0)
      if (by !== 0) void this.ask((store) => store.addSlots(arrival.replica, key, by))
    }
    this.onReached()
  }

  private lose(error: unknown): void {
    if (this.state === 'away') return
    this.state = 'away'
    // The error itself may hold what the connection was made with.
    const reason = error instanceof Error ? error.message || error.name : String(error)
    const { replicas } = this
    this.deps.log.warn(
      { reason, replicas },
      'what replicas share is away: each enforces its part of the limits',
    )
  }

  private newName(): string {
    return newId('', ID_LENGTH, this.deps.random)
  }
}
