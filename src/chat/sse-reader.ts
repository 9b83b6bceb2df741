/** Cuts a provider's bytes into whole server-sent events and reads those that must be read. */
import type { ChatChunk } from '../providers/chat-api.ts'
import { BackendFailure } from '../providers/provider.ts'

const MAX_EVENT_BYTES = 1024 * 1024
const MAX_STREAM_BYTES = 16 * 1024 * 1024

const BOUNDARY = '\n\n'
const LF = 0x0a
const CR = 0x0d
const NOTHING = Buffer.alloc(0)

/** Takes bytes cut anywhere and returns runs of whole events with LF line ends. */
export class EventReader {
  private carried: Buffer = NOTHING
  private endedInCr = false
  private receivedBytes = 0

  /** The events these bytes complete, if any. @throws BackendFailure `protocol` beyond a limit. */
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
const FIELD = `"(?!(?:choices|error|index|delta|finish_reason)")[a-z_]+": ?(?:${STRING}|${NUMBER}|null)`
const DELTA = `\\{"(?:content|reasoning_content|reasoning)": ?(?!"")${STRING}\\}`
const CHOICE = `\\{"index": ?${NUMBER}, ?"delta": ?${DELTA}(?:, ?${FIELD})*, ?"finish_reason": ?null(?:, ?${FIELD})*\\}`
const CHUNK = `\\{(?:${FIELD}, ?)*"choices": ?\\[${CHOICE}\\](?:, ?${FIELD})*\\}`
const PLAIN_EVENTS = new RegExp(`(?:data: ?${CHUNK}\\n\\n)+`, 'y')

/** Where the plain text chunks from `start` on end; they are forwarded without parsing. `text` is latin1, so that offsets are bytes. */
export function plainEnd(text: string, start: number): number {
  PLAIN_EVENTS.lastIndex = start
  return PLAIN_EVENTS.test(text) ? PLAIN_EVENTS.lastIndex : start
}

/** Where the event at `start` ends, its empty line included; a spare empty line counts as an event. */
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
  return new BackendFailure('protocol', `the backend's ${what} is larger than ${limitBytes} bytes`)
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
