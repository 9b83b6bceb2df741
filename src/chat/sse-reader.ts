/** Splits a provider's response into server-sent events, and finds those that need no parsing. */

import { toBuffer } from '../lib/bytes.ts'
import type { ChatChunk } from '../providers/chat-api.ts'
import { BackendFailure } from '../providers/provider.ts'

const MAX_EVENT_BYTES = 1024 * 1024
const MAX_STREAM_BYTES = 16 * 1024 * 1024

const BOUNDARY = '\n\n'
const LF = 0x0a
const CR = 0x0d
const NOTHING = Buffer.alloc(0)
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/** Collects arbitrarily split bytes, and returns complete events with LF line endings. */
export class EventReader {
  private carried: Buffer = NOTHING
  /** The first bytes while they may be part of a byte order mark; undefined afterwards. */
  private start: Buffer | undefined = NOTHING
  private endedInCr = false
  private receivedBytes = 0

  /**
   * Returns the events that these bytes complete, if any.
   * @throws BackendFailure `protocol` when a size limit is exceeded.
   */
  push(bytes: Uint8Array): Buffer | undefined {
    this.receivedBytes += bytes.length
    if (this.receivedBytes > MAX_STREAM_BYTES) throw tooMuch('stream', MAX_STREAM_BYTES)
    const read = toBuffer(bytes)
    const fresh = this.withPlainLineEnds(this.start === undefined ? read : this.withoutMark(this.start, read))
    const known = this.carried.length === 0 ? fresh : Buffer.concat([this.carried, fresh])
    const end = known.lastIndexOf(BOUNDARY)
    if (end === -1) {
      if (known.length > MAX_EVENT_BYTES) throw tooMuch('event', MAX_EVENT_BYTES)
      this.carried = known
      return undefined
    }
    const next = end + BOUNDARY.length
    if (next === known.length) {
      this.carried = NOTHING
      return known
    }
    this.carried = known.subarray(next)
    return known.subarray(0, next)
  }

  /** Drops one byte order mark at the start (WHATWG HTML, 9.2.5); it may be split across reads. */
  private withoutMark(start: Buffer, read: Buffer): Buffer {
    const known = Buffer.concat([start, read])
    const isMark = known.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK.subarray(0, known.length))
    const isUndecided = isMark && known.length < BYTE_ORDER_MARK.length
    this.start = isUndecided ? known : undefined
    if (isUndecided) return NOTHING
    return isMark ? known.subarray(BYTE_ORDER_MARK.length) : known
  }

  /** Converts CRLF and CR to LF; a CRLF may be split across two reads. */
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
const FIELD = `"(?!(?:choices|error|index|delta|finish_reason)")[a-z_]+": ?(?:${STRING}|${NUMBER}|null)`
const DELTA = `\\{"(?:content|reasoning_content|reasoning)": ?(?!"")${STRING}\\}`
const CHOICE = `\\{"index": ?${NUMBER}, ?"delta": ?${DELTA}(?:, ?${FIELD})*, ?"finish_reason": ?null(?:, ?${FIELD})*\\}`
const CHUNK = `\\{(?:${FIELD}, ?)*"choices": ?\\[${CHOICE}\\](?:, ?${FIELD})*\\}`
const PLAIN_EVENTS = new RegExp(`(?:data: ?${CHUNK}\\n\\n)+`, 'y')

/**
 * Returns the end of the plain text events at `start`, which need no parsing. `text` must be Latin-1, so that
 * character offsets equal byte offsets.
 */
export function plainEnd(text: string, start: number): number {
  PLAIN_EVENTS.lastIndex = start
  return PLAIN_EVENTS.test(text) ? PLAIN_EVENTS.lastIndex : start
}

/**
 * Counts the bytes of the texts in a run of plain events. `text` is the run in Latin-1. Parses only strings
 * with escape sequences.
 */
export function countPlainBytes(text: string, start: number, end: number): number {
  let bytes = 0
  let backslash = text.indexOf('\\', start)
  // Events usually differ only in their texts, so that the last event shows where to look first.
  let opening = ''
  let offset = 0
  for (let event = start; event < end; ) {
    const next = text.indexOf(BOUNDARY, event) + BOUNDARY.length
    let from = event + offset
    // A position in a later event would hide the text of this one.
    if (opening === '' || from >= next || !text.startsWith(opening, from - opening.length)) {
      const delta = text.indexOf(DELTA_KEY, event)
      // Skips the name of the only field.
      const value = text.indexOf('":', delta + DELTA_KEY.length) + 2
      from = text.indexOf('"', value) + 1
      opening = text.slice(delta, from)
      offset = from - event
    }
    let to = text.indexOf('"', from)
    if (backslash !== -1 && backslash < from) backslash = text.indexOf('\\', from)
    if (backslash === -1 || backslash > to) bytes += to - from
    else {
      while (isEscaped(text, to)) to = text.indexOf('"', to + 1)
      // The string is Latin-1 of UTF-8 bytes; escape sequences are ASCII.
      const written = Buffer.from(text.slice(from - 1, to + 1), 'latin1').toString('utf8')
      bytes += Buffer.byteLength(JSON.parse(written) as string)
    }
    event = next
  }
  return bytes
}

/** Occurs once in a plain event, because quotes in strings are escaped. */
const DELTA_KEY = '"delta":'

/** Returns whether an odd number of backslashes precedes the quote. */
function isEscaped(text: string, quote: number): boolean {
  let at = quote - 1
  while (text.charAt(at) === '\\') at -= 1
  return (quote - at) % 2 === 0
}

/** Returns the end of the event at `start`, including its empty line, or the end of an extra empty line. */
export function eventEnd(run: Buffer, start: number): number {
  return run[start] === LF ? start + 1 : run.indexOf(BOUNDARY, start) + BOUNDARY.length
}

export function* splitRun(run: Buffer): Generator<Buffer> {
  for (let start = 0; start < run.length; ) {
    const end = eventEnd(run, start)
    if (run[start] !== LF) yield run.subarray(start, end)
    start = end
  }
}

export function dataOf(event: Buffer): string | undefined {
  const lines = event
    .toString('utf8')
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => (line.startsWith('data: ') ? line.slice(6) : line.slice(5)))
  return lines.length === 0 ? undefined : lines.join('\n')
}

export function encodeEvent(value: unknown): Buffer {
  return Buffer.from(`data: ${JSON.stringify(value)}${BOUNDARY}`)
}

function tooMuch(what: string, limitBytes: number): BackendFailure {
  return new BackendFailure('protocol', `the provider's ${what} is larger than ${limitBytes} bytes`)
}

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
