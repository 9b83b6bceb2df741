/** Follows a conversation's feed, and reconnects after failures. */
import type { FeedEvent } from '../../../src/visitors/schema.ts'

/** Waiting times in milliseconds. */
export interface FeedTiming {
  /** Before the first attempt to reconnect; each further attempt waits twice as long. */
  readonly firstMs: number
  readonly longestMs: number
  /** The connection is considered lost after this time without a byte; the server sends a ping every 15 s. */
  readonly silenceMs: number
  /** Returns a number from 0 to 1, so that not all clients reconnect at the same time. */
  readonly random: () => number
}

export const feedTiming: FeedTiming = {
  firstMs: 500,
  longestMs: 15_000,
  silenceMs: 40_000,
  random: Math.random,
}

interface FeedParts {
  /** Opens one connection after `cursor`; calls `onByte` whenever bytes arrive. */
  readonly connect: (
    conversation: string,
    cursor: string,
    signal: AbortSignal,
    onByte: () => void,
  ) => Promise<AsyncIterable<FeedEvent>>
  readonly onEvent: (event: FeedEvent) => void
  /** Returns whether the feed can continue after this failure. */
  readonly onFailure: (thrown: unknown) => boolean
  readonly timing?: FeedTiming
}

export interface Feed {
  /** Follows this conversation after `cursor`, instead of any other. */
  readonly follow: (conversation: string, cursor: string) => void
  readonly stop: () => void
  /** Reconnects immediately; `isLost` also replaces a connection that seems to work. */
  readonly wake: (isLost: boolean) => void
  readonly following: () => string | undefined
}

export function createFeed({ connect, onEvent, onFailure, timing = feedTiming }: FeedParts): Feed {
  let followed: { readonly conversation: string; readonly stopped: AbortController } | undefined
  /** Ends the current wait. */
  let endWait: (() => void) | undefined
  let connection: AbortController | undefined

  async function run(conversation: string, from: string, { signal }: AbortController): Promise<void> {
    let cursor = from
    for (let failures = 0; !signal.aborted; failures++) {
      const attempt = new AbortController()
      connection = attempt
      const startedAtMs = Date.now()
      const silence = createSilenceTimer(timing.silenceMs, () => attempt.abort())
      const either = AbortSignal.any([signal, attempt.signal])
      try {
        for await (const event of await connect(conversation, cursor, either, silence.restart)) {
          if (either.aborted) break
          cursor = event.id
          failures = 0
          onEvent(event)
        }
      } catch (thrown) {
        if (!either.aborted && !onFailure(thrown)) return
      } finally {
        silence.end()
      }
      if (Date.now() - startedAtMs > timing.longestMs) failures = 0
      // Reconnects without a pause if this code, rather than the server, closed the connection.
      if (!either.aborted) await pause(delayOf(failures, timing), signal)
    }
  }

  function pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(end, ms)
      function end(): void {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        endWait = undefined
        resolve()
      }
      signal.addEventListener('abort', end)
      endWait = end
    })
  }

  function stop(): void {
    followed?.stopped.abort()
    followed = undefined
  }

  return {
    follow(conversation, cursor) {
      stop()
      const own = { conversation, stopped: new AbortController() }
      followed = own
      void run(conversation, cursor, own.stopped).finally(() => {
        if (followed === own) followed = undefined
      })
    },
    stop,
    wake(isLost) {
      if (endWait !== undefined) endWait()
      else if (isLost) connection?.abort()
    },
    following: () => followed?.conversation,
  }
}

/**
 * Returns the delay before the next attempt in milliseconds, which is a random value between 50 and 100 % of
 * an exponential backoff.
 */
export function delayOf(failures: number, { firstMs, longestMs, random }: FeedTiming): number {
  const fullMs = Math.min(longestMs, firstMs * 2 ** Math.min(failures, 10))
  return fullMs * (0.5 + random() / 2)
}

function createSilenceTimer(ms: number, onSilence: () => void) {
  let timer = setTimeout(onSilence, ms)
  return {
    restart() {
      clearTimeout(timer)
      timer = setTimeout(onSilence, ms)
    },
    end: () => clearTimeout(timer),
  }
}
