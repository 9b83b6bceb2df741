/** Knows who in this process is writing into which upload, so that they can be asked to stop. */
import { setTimeout as wait } from 'node:timers/promises'
import type { ServiceError } from '../errors.ts'

/** Whoever was asked has stopped by then, or hangs. */
const STOPPED_WITHIN_MS = 5_000

/** What somebody who writes has; `stopped` aborts when they are to stop. */
export interface Hold {
  readonly stopped: AbortSignal
  /** Tells that they have. */
  end(): void
}

export interface UploadsUnderWay {
  hold(id: string): Hold
  /** Asks whoever writes into that upload to stop, for that reason, and waits until they have, or for a while. */
  stop(id: string, reason: ServiceError): Promise<void>
}

export function createUploadsUnderWay(): UploadsUnderWay {
  const holders = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>()
  return {
    hold(id) {
      const stop = new AbortController()
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      const holder = { stop, ended }
      holders.set(id, holder)
      return {
        stopped: stop.signal,
        end() {
          if (holders.get(id) === holder) holders.delete(id)
          resolve()
        },
      }
    },
    async stop(id, reason) {
      const holder = holders.get(id)
      if (holder === undefined) return
      holder.stop.abort(reason)
      const enough = new AbortController()
      const overdue = wait(STOPPED_WITHIN_MS, undefined, { signal: enough.signal }).catch(() => {})
      await Promise.race([holder.ended, overdue])
      enough.abort()
    },
  }
}
