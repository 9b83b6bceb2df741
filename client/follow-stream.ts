/** Reads a stream from the server, and opens it again after each interruption. */
import { toFailure } from './failure.ts'

/** The first and the longest pause before a stream is opened again, in milliseconds. */
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000

/** Number of failures after which the pause has its maximum length. */
const FAILURES_TO_LONGEST = 5
/** Statuses with which the server would reject the same request again. */
const rejections: readonly number[] = [400, 403, 404]

interface FollowedStream<Event> {
  /** Opens the stream; called again after each interruption. */
  readonly open: (signal: AbortSignal) => Promise<AsyncIterable<Event>>
  /** Its errors do not interrupt the stream. */
  readonly onEvent: (event: Event) => void
  /** Reports whether the stream is open. */
  readonly onConnection?: (isConnected: boolean) => void
  /** Called when the server rejects the stream, which is then not opened again. */
  readonly onRejection?: () => void
  readonly signal: AbortSignal
}

/**
 * Follows a stream until the signal aborts or the server rejects the stream, for example because the resource
 * was deleted.
 */
export async function followStream<Event>(followed: FollowedStream<Event>): Promise<void> {
  const { signal, onConnection, onRejection } = followed
  for (let failures = 0; !signal.aborted; failures++) {
    // A connection that was opened before the browser went offline may never report its end.
    const reopening = new AbortController()
    const reopen = () => reopening.abort()
    window.addEventListener('online', reopen, { once: true })
    try {
      for await (const event of await followed.open(AbortSignal.any([signal, reopening.signal]))) {
        if (signal.aborted) return
        failures = 0
        onConnection?.(true)
        handle(followed, event)
      }
    } catch (thrown) {
      const { status } = toFailure(thrown)
      if (rejections.includes(status)) {
        onConnection?.(false)
        return onRejection?.()
      }
      // Retries rarely, because the user must sign in again first.
      if (status === 401) failures = FAILURES_TO_LONGEST
    } finally {
      window.removeEventListener('online', reopen)
    }
    if (signal.aborted) return
    onConnection?.(false)
    await pause(failures, signal)
  }
}

/** Reports an error of the handler like an uncaught one, because opening the stream again would not fix it. */
function handle<Event>({ onEvent }: FollowedStream<Event>, event: Event): void {
  try {
    onEvent(event)
  } catch (thrown) {
    reportError(thrown)
  }
}

/**
 * Waits until the browser is online, and longer after each failure, so that a starting server is not
 * overloaded.
 */
export async function pause(failures: number, signal: AbortSignal): Promise<void> {
  const limitMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures)
  await wait(navigator.onLine ? limitMs * (0.5 + Math.random() / 2) : undefined, signal)
}

/** Resolves after the time, when the browser is online again, or when the signal aborts. */
function wait(milliseconds: number | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      window.removeEventListener('online', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = milliseconds === undefined ? undefined : setTimeout(done, milliseconds)
    window.addEventListener('online', done)
    signal.addEventListener('abort', done)
  })
}
