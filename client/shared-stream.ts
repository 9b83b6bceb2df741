/**
 * Reads a stream in one tab of the browser for all tabs, because browsers open at most six HTTP/1.1 connections
 * to a server.
 */
import { followStream } from './follow-stream.ts'

/** Asks the tab that reads the stream for its last event. */
const ASK = 'ask'

interface SharedStream<Event> {
  /** The same in all tabs that share the stream. */
  readonly name: string
  /** Opens the stream; called again after each interruption. */
  readonly open: (signal: AbortSignal) => Promise<AsyncIterable<Event>>
  /** `isNews` is true in the tab that reads the stream, except for the first event there. */
  readonly onEvent: (event: Event, isNews: boolean) => void
  readonly signal: AbortSignal
}

/** Follows the stream until the signal aborts. */
export function followShared<Event extends object>({
  name,
  open,
  onEvent,
  signal,
}: SharedStream<Event>): void {
  const tabs = new BroadcastChannel(name)
  signal.addEventListener('abort', () => tabs.close())
  let last: Event | undefined
  tabs.onmessage = ({ data }: MessageEvent<Event | typeof ASK>) => {
    if (data !== ASK) onEvent(data, false)
    else if (last !== undefined) tabs.postMessage(last)
  }
  tabs.postMessage(ASK)
  const read = () =>
    followStream<Event>({
      open,
      onEvent(event) {
        const isNews = last !== undefined
        last = event
        tabs.postMessage(event)
        onEvent(event, isNews)
      },
      signal,
    })
  // Locks exist only on secure pages; without them, each tab reads the stream.
  if (navigator.locks === undefined) void read()
  else void navigator.locks.request(name, { signal }, read).catch(() => undefined)
}
