/** Defines the coordination store's interface, which Redis and PostgreSQL implement. */
import type { Quota, StreamQuota, WindowCount } from './limits.ts'

/** A replica whose last heartbeat is older than this is considered dead, and its streams are not counted. */
export const LIVE_FOR_MS = 10_000

export interface Registration {
  /** The replica's new, unique name. */
  readonly replica: string
  /** The replica's previous name, whose stream counts are deleted. */
  readonly former: string
  /** Number of open streams per counter. */
  readonly open: ReadonlyMap<string, number>
}

/**
 * Name of the store's check in `/readyz`. PostgreSQL uses `replicas`, because `database` checks the database
 * itself.
 */
export type CoordinationStoreName = 'redis' | 'replicas'

/** Every method settles quickly, and rejects if the store is unavailable. */
export interface CoordinationStore {
  readonly name: CoordinationStoreName
  /**
   * Charges `cost` requests to every quota, or to none if one of them has too few left; returns each count
   * including this hit.
   */
  hit(quotas: readonly Quota[], cost: number): Promise<readonly WindowCount[]>
  /**
   * Counts one stream in every quota and returns undefined, or counts none and returns the quota that is
   * full.
   */
  acquireStream(replica: string, quotas: readonly StreamQuota[]): Promise<StreamQuota | undefined>
  adjustStreams(replica: string, key: string, by: number): Promise<void>
  register(registration: Registration): Promise<number>
  /**
   * Renews the replica's lease; returns the number of live replicas, or undefined if this one is not
   * registered.
   */
  beat(replica: string): Promise<number | undefined>
  leave(replica: string): Promise<void>
  /** Publishes to every subscribed replica, including this one. */
  send(text: string): Promise<void>
  /** Resolves when subscribed, or when the first attempt has failed. */
  subscribe(subscriber: Subscriber): Promise<void>
  isSubscribed(): boolean
  close(): Promise<void>
}

export interface Subscriber {
  onMessage(text: string): void
  /** Called when messages may have been missed. */
  onGap(): void
}
