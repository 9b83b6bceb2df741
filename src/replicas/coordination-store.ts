/** Defines the interface of the coordination store, which Redis and PostgreSQL implement. */
import type { Quota, StreamQuota, WindowCount } from './limits.ts'

/** A replica without a heartbeat for this long counts as dead, and its streams are no longer counted. */
export const LIVE_FOR_MS = 10_000

export interface Registration {
  /** A new, unique name of the replica. */
  readonly replica: string
  /** The previous name of the replica; everything counted for it is deleted. */
  readonly former: string
  /** The number of open streams by key. */
  readonly open: ReadonlyMap<string, number>
}

/** The name of the check in `/readyz`; `replicas` is PostgreSQL, whose own health is the check `database`. */
export type CoordinationStoreName = 'redis' | 'replicas'

/** Every method settles soon, and rejects when the store is unavailable. */
export interface CoordinationStore {
  readonly name: CoordinationStoreName
  /** Counts a hit as `cost` requests in the windows of all quotas, or in none if one has fewer left; returns the counts including this hit. */
  hit(quotas: readonly Quota[], cost: number): Promise<readonly WindowCount[]>
  /** Counts one stream for every quota, or for none; returns the quota that is used up. */
  acquireStream(replica: string, quotas: readonly StreamQuota[]): Promise<StreamQuota | undefined>
  adjustStreams(replica: string, key: string, by: number): Promise<void>
  register(registration: Registration): Promise<number>
  /** Renews the replica; returns the number of live replicas, or undefined if this one is not registered. */
  beat(replica: string): Promise<number | undefined>
  leave(replica: string): Promise<void>
  /** Publishes to every subscribed replica, including this one. */
  send(text: string): Promise<void>
  /** Subscribes to messages; resolves when subscribed, or when the first attempt has failed. */
  subscribe(subscriber: Subscriber): Promise<void>
  isSubscribed(): boolean
  close(): Promise<void>
}

export interface Subscriber {
  onMessage(text: string): void
  /** Called after messages may have been missed. */
  onGap(): void
}
