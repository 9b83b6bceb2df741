/** What a store has to do in which all replicas count, and through which they talk; Redis and PostgreSQL do it. */
import type { Quota, WindowCount } from './rate-limiter.ts'
import type { SlotOwner } from './stream-limiter.ts'

/** A replica that has not shown itself for so long is gone, and so are the slots it had. */
export const LIVE_FOR_MS = 10_000

/** A replica that begins to count in the store. */
export interface Arrival {
  /** Never used before. */
  readonly replica: string
  /** As whom it was known; forgotten with all that counted for it. */
  readonly former: string
  /** The slots it has open, by their keys. */
  readonly open: ReadonlyMap<string, number>
}

/** `replicas` is PostgreSQL: how it is doing itself, another check tells. */
export type SharedStoreName = 'redis' | 'replicas'

/** Every call ends soon, and rejects when the store is away. Slots count as long as the replica they are for shows itself. */
export interface CommonStore {
  /** Under which `/readyz` tells how it is doing. */
  readonly name: SharedStoreName
  /** Counts one hit in the windows of all quotas, or in none when one is full; answers what each would be with it. */
  hit(quotas: readonly Quota[]): Promise<readonly WindowCount[]>
  /** Takes a slot of each owner, or none; answers with the owner that has none left. */
  takeSlots(replica: string, owners: readonly SlotOwner[]): Promise<SlotOwner | undefined>
  /** Corrects how many slots of a key a replica has. */
  addSlots(replica: string, key: string, by: number): Promise<void>
  /** Answers how many replicas there are now. */
  register(arrival: Arrival): Promise<number>
  /** Shows that the replica lives; answers how many do, or undefined when this one is not known (any more). */
  beat(replica: string): Promise<number | undefined>
  leave(replica: string): Promise<void>
  /** Tells every replica that listens, this one too. */
  send(text: string): Promise<void>
  /** Hears what is sent from now on; resolves when it does, or after a while. */
  listen(hearing: Hearing): Promise<void>
  /** Whether what is sent is heard here at the moment. */
  isListening(): boolean
  close(): Promise<void>
}

/** What is done with what arrives. */
export interface Hearing {
  onMessage(text: string): void
  /** Something may have been missed until now. */
  onGap(): void
}
