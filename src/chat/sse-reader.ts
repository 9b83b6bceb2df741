/** Cuts a backend's bytes into whole server-sent events and reads those that are worth reading. Protocol: SSE, 9.2.6. */

import type { ChatChunk } from '../providers/chat-api.ts'
import { BackendFailure } from '../providers/provider.ts'

/** Longest event that is put up with, in bytes. Security: 2.5 (stream). */
const MAX_EVENT_BYTES = 1024 * 1024
/** The most a whole stream may bring, in bytes. */
const MAX_STREAM_BYTES = 16 * 1024 * 1024

const BOUNDARY = '\n\n'
const LF = 0x0a
const CR = 0x0d
const NOTHING = Buffer.alloc(0)

/** Takes bytes cut anywhere and gives back runs of whole events, with line ends made one kind. */
export class EventReader {
  private carried: Buffer = NOTHING
  private endedInCr = false
  private receivedBytes = 0

  /**
   * The whole events these bytes complete; undefined when they complete none.
   * @throws BackendFailure `protocol` for an event or a stream beyond its limit.
   */
  push(bytes: Uint8Array): Buffer | undefined {
    this.receivedBytes += bytes.length
    if (this.receivedBytes > MAX_STREAM_BYTES) throw tooMuch('stream', MAX_STREAM_BYTES)
    const fresh = this.withPlainLineEnds(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
    const known = this.carried.length === 0 ? fresh : Buffer.concat([this.carried, fresh])
    const end = known.lastIndexOf(BOUNDARY)
    if (end === -1) {
      if (known.length > MAX_EVENT_BYTES) throw tooMuch('event', MAX_EVENT_BYTES)
      this.carried = known
      return undefined
    }
    this.carried = known.subarray(end + BOUNDARY.length)
    return known.subarray(0, end + BOUNDARY.length)
  }

  /** CRLF and CR end lines too; a pair may be cut in two by a read. */
  private withPlainLineEnds(bytes: Buffer): Buffer {
    const fresh = this.endedInCr && bytes[0] === LF ? bytes.subarray(1) : bytes
    if (bytes.length > 0) this.endedInCr = bytes.at(-1) === CR
    return fresh.includes(CR)
      ? Buffer.from(fresh.toString('latin1').replace(/\r\n?/g, '\n'), 'latin1')
      : fresh
  }
}

const STRING = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})[^"\\\x00-\x1f]*)*"`
const NUMBER = '(?:0|[1-9]\\d*)'
/** A field whose value is worth no look: nothing inside it can matter. */
const FIELD = `"(?!(?:choices|error|index|delta|finish_reason)")[a-z_]+": ?(?:${STRING}|${NUMBER}|null)`
const DELTA = `\\{"(?:content|reasoning_content|reasoning)": ?(?!"")${STRING}\\}`
const CHOICE = `\\{"index": ?${NUMBER}, ?"delta": ?${DELTA}(?:, ?${FIELD})*, ?"finish_reason": ?null(?:, ?${FIELD})*\\}`
const CHUNK = `\\{(?:${FIELD}, ?)*"choices": ?\\[${CHOICE}\\](?:, ?${FIELD})*\\}`
const PLAIN_EVENTS = new RegExp(`(?:data: ?${CHUNK}\\n\\n)+`, 'y')

/**
 * Where the events from `start` on stop being plain: nothing but text in the middle of an answer, written the way most backends write
 * it. Such events are forwarded as the bytes they came in; whatever is not recognised here is merely read.
 * `text` is the run as latin1, so that its places are the run's.
 */
export function plainEnd(text: string, start: number): number {
  PLAIN_EVENTS.lastIndex = start
  return PLAIN_EVENTS.test(text) ? PLAIN_EVENTS.lastIndex : start
}

/** Where the event at `start` ends, the empty line after it included; a spare empty line is an event of its own. */
export function eventEnd(run: Buffer, start: number): number {
  return run[start] === LF ? start + 1 : run.indexOf(BOUNDARY, start) + BOUNDARY.length
}

/** The single events of a run. */
export function* splitRun(run: Buffer): Generator<Buffer> {
  for (let start = 0; start < run.length; ) {
    const end = eventEnd(run, start)
    if (run[start] !== LF) yield run.subarray(start, end)
    start = end
  }
}

/** The data of one event, its lines joined; undefined for a comment. */
export function dataOf(event: Buffer): string | undefined {
  const lines = event
    .toString('utf8')
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => (line.startsWith('data: ') ? line.slice(6) : line.slice(5)))
  return lines.length === 0 ? undefined : lines.join('\n')
}

/** One event of JSON, as bytes. */
export function encodeEvent(value: unknown): Buffer {
  return Buffer.from(`data: ${JSON.stringify(value)}${BOUNDARY}`)
}

function tooMuch(what: string, limitBytes: number): BackendFailure {
  return new BackendFailure('protocol', `the backend's ${what} is larger than ${limitBytes} bytes`)
}

/** The chunks each read of the backend brought. Leaving the iteration ends the stream. */
export async function* decodeRuns(
  runs: AsyncIterator<Uint8Array, void, void>,
): AsyncGenerator<ChatChunk[], void, void> {
  try {
    for (let run = await runs.next(); !run.done; run = await runs.next()) {
      yield [...splitRun(Buffer.from(run.value))].map((event) => JSON.parse(dataOf(event) as string))
    }
  } finally {
    await runs.return?.()
  }
}
