/** Counts the streams open at once per key and address. */
import { ServiceError } from '../lib/errors.ts'

/** Something that may have so many streams open at once; 0 = as many as it likes. */
export interface SlotOwner {
  readonly key: string
  readonly limit: number
}

/** Gives slots back; once, however often it is called. */
export type GiveBack = () => void

export interface StreamSlots {
  /**
   * Takes one slot of each owner.
   * @throws ServiceError `rate_limit_exceeded` when one of them has none left; then none is taken.
   */
  take(owners: readonly SlotOwner[]): Promise<GiveBack> | GiveBack
}

/** How many slots of each key are taken; a key with none is not in it. */
export class OpenSlots {
  private readonly counts = new Map<string, number>()

  countOf(key: string): number {
    return this.counts.get(key) ?? 0
  }

  add(keys: readonly string[], by: 1 | -1): void {
    for (const key of keys) {
      const count = this.countOf(key) + by
      if (count > 0) this.counts.set(key, count)
      else this.counts.delete(key)
    }
  }

  /** All counts as they are now. */
  snapshot(): Map<string, number> {
    return new Map(this.counts)
  }
}

/** The owners that are bound by a limit. */
export function listLimited(owners: readonly SlotOwner[]): SlotOwner[] {
  return owners.filter(({ limit }) => limit > 0)
}

/** @returns the same, but for every call after the first. */
export function once(giveBack: GiveBack): GiveBack {
  let isTaken = true
  return () => {
    if (!isTaken) return
    isTaken = false
    giveBack()
  }
}

export function noneLeft({ limit }: SlotOwner): ServiceError {
  return new ServiceError('rate_limit_exceeded', `At most ${limit} streams may be open at once here.`, {
    retryAfterSeconds: 1,
  })
}

/** The slots of one process. */
export function createStreamSlots(): StreamSlots {
  const open = new OpenSlots()
  return {
    take(owners) {
      const limited = listLimited(owners)
      const full = limited.find(({ key, limit }) => open.countOf(key) >= limit)
      if (full !== undefined) throw noneLeft(full)
      const keys = limited.map(({ key }) => key)
      open.add(keys, 1)
      return once(() => open.add(keys, -1))
    },
  }
}
