/**
 * Registers this replica in the coordination store, and detects when the store becomes unavailable or
 * available again.
 */

import { newId } from '../lib/ids.ts'
import type { CoordinationStore } from './coordination-store.ts'
import type { Dependencies } from './dependencies.ts'
import { OpenStreams } from './limits.ts'

const BEAT_EVERY_MS = 1_000
const ID_LENGTH = 16

/**
 * Manages the connection to the store. Only the heartbeat retries after a failure, so requests never wait for
 * the store. After a reconnection, the replica registers under a new name, because failed calls may have
 * taken effect.
 */
export class Membership {
  /** This replica's open streams, including those that the store has not counted. */
  readonly open = new OpenStreams()
  private readonly store: CoordinationStore
  private readonly deps: Pick<Dependencies, 'random' | 'log'>
  private name: string
  private state: 'unknown' | 'connected' | 'lost' = 'unknown'
  private replicas = 1
  private onConnected = () => {}
  private beating: Promise<void> | undefined
  private timer: NodeJS.Timeout | undefined
  private isClosed = false

  constructor(store: CoordinationStore, deps: Pick<Dependencies, 'random' | 'log'>) {
    this.store = store
    this.deps = deps
    this.name = this.newName()
  }

  /**
   * Resolves after the first attempt, even if it fails; calls `onConnected` whenever the store becomes
   * available.
   */
  start(onConnected: () => void): Promise<void> {
    this.onConnected = onConnected
    this.timer = setInterval(() => void this.beat(), BEAT_EVERY_MS).unref()
    return this.beat()
  }

  /** True while the store is unavailable. */
  get isAlone(): boolean {
    return this.state !== 'connected'
  }

  get replica(): string {
    return this.name
  }

  /** This replica's share of a limit while the store is unavailable. */
  shareOf(limit: number): number {
    return Math.ceil(limit / this.replicas)
  }

  /** Queries the store; returns undefined if it is unavailable or the query fails. */
  async ask<T>(query: (store: CoordinationStore) => Promise<T>): Promise<{ readonly answer: T } | undefined> {
    if (this.isAlone) return undefined
    try {
      return { answer: await query(this.store) }
    } catch (error) {
      this.lose(error)
      return undefined
    }
  }

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
    // Retries the connection once more, so that lost messages can be reported.
    if (this.isAlone) await this.beat()
    this.isClosed = true
    await this.beating
    await this.ask((store) => store.leave(this.name))
  }

  private async beatOnce(): Promise<void> {
    const replicas = this.isAlone ? undefined : await this.store.beat(this.name)
    if (replicas === undefined) await this.register()
    else this.replicas = replicas
  }

  private async register(): Promise<void> {
    const registration = { replica: this.newName(), former: this.name, open: this.open.snapshot() }
    const replicas = await this.store.register(registration)
    // Does not lower the known number of replicas, because after the store has lost its data, the other
    // replicas register again within a second.
    this.replicas = Math.max(this.replicas, replicas)
    this.name = registration.replica
    if (this.state === 'lost')
      this.deps.log.info('coordination store available again: limits apply across all replicas')
    this.state = 'connected'
    this.adjustStreams(registration)
    this.onConnected()
  }

  /** Corrects the counts of streams that were opened or closed during the registration. */
  private adjustStreams({ replica, open }: { replica: string; open: ReadonlyMap<string, number> }): void {
    const now = this.open.snapshot()
    for (const key of new Set([...open.keys(), ...now.keys()])) {
      const by = (now.get(key) ?? 0) - (open.get(key) ?? 0)
      if (by !== 0) void this.ask((store) => store.adjustStreams(replica, key, by))
    }
  }

  private lose(error: unknown): void {
    if (this.state === 'lost') return
    this.state = 'lost'
    // Omits the error object, which may contain the connection's credentials.
    const reason = error instanceof Error ? error.message || error.name : String(error)
    const fields = { reason, replicas: this.replicas }
    this.deps.log.warn(
      fields,
      'coordination store unavailable: each replica enforces its share of the limits',
    )
  }

  private newName(): string {
    return newId('', ID_LENGTH, this.deps.random)
  }
}
