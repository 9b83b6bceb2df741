/** Encodes runs of a turn's events for storage, without the parts that an event shares with the one before it (ADR 0049). */

/**
 * `chat` is a server-sent event of the chat API, `completion` a whole answer, and `failure` the event that ends a
 * broken stream; a client may receive these. `step` is a call of a server tool or its result, which only the log has.
 */
export type LogKind = 'chat' | 'completion' | 'failure' | 'step'

export interface LogEntry {
  readonly kind: LogKind
  readonly bytes: Buffer
  /** The entry to store instead of this one, if the agent stores less than clients receive. */
  readonly stored?: LogEntry
}

const kinds: readonly LogKind[] = ['chat', 'completion', 'failure', 'step']
const NOTHING = Buffer.alloc(0)

/** Each entry is its kind, the lengths of the shared start, the shared end and the rest, and the rest itself. */
export function encodeSegment(entries: readonly LogEntry[]): Buffer {
  const parts: Buffer[] = []
  let previous: Buffer = NOTHING
  for (const { kind, bytes } of entries) {
    const start = sharedStart(previous, bytes)
    const end = sharedEnd(previous, bytes, start)
    const rest = bytes.subarray(start, bytes.length - end)
    const head = Buffer.from([
      kinds.indexOf(kind),
      ...toVarint(start),
      ...toVarint(end),
      ...toVarint(rest.length),
    ])
    parts.push(head, rest)
    previous = bytes
  }
  return Buffer.concat(parts)
}

export function decodeSegment(segment: Uint8Array): LogEntry[] {
  const source = Buffer.from(segment.buffer, segment.byteOffset, segment.length)
  const entries: LogEntry[] = []
  let previous: Buffer = NOTHING
  let at = 0
  const readVarint = () => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = source[at++] as number
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < source.length) {
    const kind = kinds[source[at++] as number] as LogKind
    const [start, end, length] = [readVarint(), readVarint(), readVarint()]
    const rest = source.subarray(at, at + length)
    at += length
    const bytes = Buffer.concat([previous.subarray(0, start), rest, previous.subarray(previous.length - end)])
    entries.push({ kind, bytes })
    previous = bytes
  }
  return entries
}

function sharedStart(one: Buffer, other: Buffer): number {
  const most = Math.min(one.length, other.length)
  let length = 0
  while (length < most && one[length] === other[length]) length += 1
  return length
}

/** The shared end may not overlap the shared start. */
function sharedEnd(one: Buffer, other: Buffer, start: number): number {
  const most = Math.min(one.length, other.length) - start
  let length = 0
  while (length < most && one[one.length - 1 - length] === other[other.length - 1 - length]) length += 1
  return length
}

function toVarint(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return [...bytes, rest]
}
