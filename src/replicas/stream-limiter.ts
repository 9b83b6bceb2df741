/** Limits the number of streams open at once by key and by address. */
import { ServiceError } from '../lib/errors.ts'

/** The number of streams that a key may have open at once; 0 means no limit. */
export interface StreamQuota {
  readonly key: string
  readonly limit: number
}

/** Ends a stream; only the first call counts. */
export type Release = () => void

export interface StreamLimiter {
  /** Counts one stream for every quota. @throws ServiceError `rate_limit_exceeded` when one is used up; then none is counted. */
  acquire(quotas: readonly StreamQuota[]): Promise<Release> | Release
}

/** The number of open streams by key; a key without streams is absent. */
export class OpenStreams {
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

  snapshot(): Map<string, number> {
    return new Map(this.counts)
  }
}

export function listLimited(quotas: readonly StreamQuota[]): StreamQuota[] {
  return quotas.filter(({ limit }) => limit > 0)
}

export function once(release: Release): Release {
  let isReleased = false
  return () => {
    if (isReleased) return
    isReleased = true
    release()
  }
}

export function tooManyStreams({ limit }: StreamQuota): ServiceError {
  return new ServiceError('rate_limit_exceeded', `At most ${limit} streams may be open at once here.`, {
    retryAfterSeconds: 1,
  })
}

export function createMemoryStreamLimiter(): StreamLimiter {
  const open = new OpenStreams()
  return {
    acquire(quotas) {
      const limited = listLimited(quotas)
      const full = limited.find(({ key, limit }) => open.countOf(key) >= limit)
      if (full !== undefined) throw tooManyStreams(full)
      const keys = limited.map(({ key }) => key)
      open.add(keys, 1)
      return once(() => open.add(keys, -1))
    },
  }
}
