/** Counts the clients that follow conversations. */
import type { Release, StreamLimiter, StreamQuota } from '../replicas/limits.ts'

/** Counts open feeds, and ends them when the server stops, so that clients continue on another server. */
export class Followers {
  private readonly limiter: StreamLimiter
  private readonly stopping = new AbortController()

  constructor(limiter: StreamLimiter) {
    this.limiter = limiter
  }

  /** Aborts when the server stops. */
  get signal(): AbortSignal {
    return this.stopping.signal
  }

  /** @throws ServiceError `rate_limit_exceeded` */
  async acquire(quotas: readonly StreamQuota[]): Promise<Release> {
    return this.limiter.acquire(quotas)
  }

  stop(): void {
    this.stopping.abort()
  }
}
