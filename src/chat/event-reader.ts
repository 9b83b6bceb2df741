/** Cuts a backend's bytes into whole server-sent events and reads those that are worth reading. Protocol: SSE, 9.2.6. */
import { BackendFailure } from './backend.ts'

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

/** Every line of the run is one event that looks like a chunk and nothing else. */
const CHUNKS_ONLY = /^(?:data: ?\{"[^\n]*?"choices": ?\[\{[^\n]*\}\n\n)+$/
/** What makes a chunk worth reading: a role, a tool call, a failure, usage, an end. */
const NOTABLE = /"(?:role|tool_calls|function_call|error)":|"usage": ?\{|"finish_reason": ?"/

/**
 * Whether a run of whole events holds nothing but text in the middle of an answer. Such a run is forwarded as the bytes it came in;
 * whatever is not recognised here is merely read event by event.
 */
export function isPlain(run: Buffer): boolean {
  const text = run.toString('latin1')
  return !NOTABLE.test(text) && CHUNKS_ONLY.test(text)
}

/** The single events of a run, each with the empty line that ends it. */
export function* splitRun(run: Buffer): Generator<Buffer> {
  for (let start = 0; start < run.length; ) {
    const end = run.indexOf(BOUNDARY, start) + BOUNDARY.length
    yield run.subarray(start, end)
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
