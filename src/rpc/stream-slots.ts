/** Counts the streams open at once per key and address, in this process. */
import { ServiceError } from '../errors.ts'

/** Something that may have so many streams open at once; 0 = as many as it likes. */
export interface SlotOwner {
  readonly key: string
  readonly limit: number
}

export interface StreamSlots {
  /**
   * Takes one slot of each owner, and returns what gives them back (once, however often it is called).
   * @throws ServiceError `rate_limit_exceeded` when one of them has none left; then none is taken.
   */
  take(owners: readonly SlotOwner[]): () => void
}

export function createStreamSlots(): StreamSlots {
  const open = new Map<string, number>()

  function giveBack(key: string): void {
    const left = (open.get(key) ?? 0) - 1
    if (left > 0) open.set(key, left)
    else open.delete(key)
  }

  return {
    take(owners) {
      const limited = owners.filter((owner) => owner.limit > 0)
      for (const { key, limit } of limited) {
        if ((open.get(key) ?? 0) >= limit) {
          throw new ServiceError(
            'rate_limit_exceeded',
            `At most ${limit} streams may be open at once here.`,
            {
              retryAfterSeconds: 1,
            },
          )
        }
      }
      for (const { key } of limited) open.set(key, (open.get(key) ?? 0) + 1)
      let isTaken = true
      return () => {
        if (!isTaken) return
        isTaken = false
        for (const { key } of limited) giveBack(key)
      }
    },
  }
}
