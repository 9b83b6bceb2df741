/** Joins a turn's events to runs, and encodes them for storage without the parts that an event shares with the one before it (ADR 0049). */

/**
 * `chat` is a server-sent event of the chat API, `completion` a whole answer, and `failure` the event that ends a
 * broken stream; a client may receive these. `step` is a call of a server tool or its result, which only the log has.
 */
export type LogKind = 'chat' | 'completion' | 'failure' | 'step'

export interface LogEntry {
  readonly kind: LogKind
  readonly bytes: Buffer
}

/** Consecutive entries of the same kind, which cost less than separate objects. */
export interface LogRun {
  readonly kind: LogKind
  readonly bytes: Uint8Array
  /** The end of each entry in `bytes`. */
  readonly ends: readonly number[]
}

const kinds: readonly LogKind[] = ['chat', 'completion', 'failure', 'step']
/** The kind and three lengths of at most five bytes each. */
const MAX_HEAD_BYTES = 16
const LF = 0x0a

export function toBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}

/** Returns the run of these complete server-sent events. */
export function toChatRun(bytes: Uint8Array): LogRun {
  const ends: number[] = []
  for (let at = bytes.indexOf(LF); at !== -1; ) {
    const isBoundary = bytes[at + 1] === LF
    if (isBoundary) ends.push(at + 2)
    at = bytes.indexOf(LF, isBoundary ? at + 2 : at + 1)
  }
  return { kind: 'chat', bytes, ends }
}

export function toRun({ kind, bytes }: LogEntry): LogRun {
  return { kind, bytes, ends: [bytes.length] }
}

export function* entriesOf({ kind, bytes, ends }: LogRun): Generator<LogEntry, void, void> {
  const source = toBuffer(bytes)
  let start = 0
  for (const end of ends) {
    yield { kind, bytes: source.subarray(start, end) }
    start = end
  }
}

/** Returns the entries of a run without the first `count`. */
export function skipEntries(run: LogRun, count: number): LogRun {
  if (count <= 0) return run
  const start = run.ends[count - 1] as number
  return {
    kind: run.kind,
    bytes: run.bytes.subarray(start),
    ends: run.ends.slice(count).map((end) => end - start),
  }
}

/** Joins neighbouring runs of the same kind. Copies all bytes, so that the result shares no memory. */
export function joinRuns(runs: readonly LogRun[]): LogRun[] {
  const joined: LogRun[] = []
  for (let first = 0; first < runs.length; ) {
    const { kind } = runs[first] as LogRun
    let last = first
    while (runs[last]?.kind === kind) last += 1
    joined.push(joinSame(kind, runs.slice(first, last)))
    first = last
  }
  return joined
}

function joinSame(kind: LogKind, runs: readonly LogRun[]): LogRun {
  const bytes = new Uint8Array(runs.reduce((sum, run) => sum + run.bytes.length, 0))
  const ends: number[] = []
  let at = 0
  for (const run of runs) {
    bytes.set(run.bytes, at)
    for (const end of run.ends) ends.push(at + end)
    at += run.bytes.length
  }
  return { kind, bytes, ends }
}

export function countEntries(runs: readonly LogRun[]): number {
  return runs.reduce((count, { ends }) => count + ends.length, 0)
}

/** Each entry is its kind, the lengths of the shared start, the shared end and the rest, and the rest itself. */
export function encodeSegment(runs: readonly LogRun[]): Buffer {
  const size = runs.reduce((sum, { bytes, ends }) => sum + bytes.length + ends.length * MAX_HEAD_BYTES, 0)
  const target = Buffer.allocUnsafe(size)
  let at = 0
  let before: Uint8Array = target
  let [beforeStart, beforeEnd] = [0, 0]
  for (const { kind, bytes, ends } of runs) {
    const kindIndex = kinds.indexOf(kind)
    let from = 0
    for (const to of ends) {
      const most = Math.min(beforeEnd - beforeStart, to - from)
      let start = 0
      while (start < most && before[beforeStart + start] === bytes[from + start]) start += 1
      // The shared end may not overlap the shared start.
      let end = 0
      while (start + end < most && before[beforeEnd - 1 - end] === bytes[to - 1 - end]) end += 1
      target[at++] = kindIndex
      at = writeVarint(target, at, start)
      at = writeVarint(target, at, end)
      at = writeVarint(target, at, to - from - start - end)
      for (let index = from + start; index < to - end; index++) target[at++] = bytes[index] as number
      before = bytes
      ;[beforeStart, beforeEnd] = [from, to]
      from = to
    }
  }
  return Buffer.from(target.subarray(0, at))
}

function writeVarint(target: Buffer, at: number, value: number): number {
  let next = at
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) target[next++] = (rest & 0x7f) | 0x80
  target[next++] = rest
  return next
}

export function decodeSegment(segment: Uint8Array): LogRun[] {
  return new SegmentDecoder(segment).decode()
}

/** Measures the entries first, so that their bytes need only one buffer. */
class SegmentDecoder {
  private readonly source: Uint8Array
  private at = 0

  constructor(segment: Uint8Array) {
    this.source = segment
  }

  decode(): LogRun[] {
    const bytes = new Uint8Array(this.measure())
    const runs: { kind: LogKind; first: number; ends: number[] }[] = []
    let [from, to] = [0, 0]
    for (this.at = 0; this.at < this.source.length; ) {
      const kind = kinds[this.source[this.at++] as number] as LogKind
      const [start, end, length] = [this.readVarint(), this.readVarint(), this.readVarint()]
      bytes.copyWithin(to, from, from + start)
      for (let index = 0; index < length; index++)
        bytes[to + start + index] = this.source[this.at + index] as number
      bytes.copyWithin(to + start + length, to - end, to)
      this.at += length
      ;[from, to] = [to, to + start + length + end]
      const run = runs.at(-1)
      if (run?.kind === kind) run.ends.push(to - run.first)
      else runs.push({ kind, first: from, ends: [to - from] })
    }
    return runs.map(({ kind, first, ends }) => ({
      ...{ kind, ends },
      bytes: bytes.subarray(first, first + (ends.at(-1) as number)),
    }))
  }

  /** Returns the number of bytes of all entries. */
  private measure(): number {
    let sum = 0
    for (this.at = 0; this.at < this.source.length; ) {
      this.at += 1
      const [start, end, length] = [this.readVarint(), this.readVarint(), this.readVarint()]
      sum += start + end + length
      this.at += length
    }
    return sum
  }

  private readVarint(): number {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.source[this.at++] as number
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
}
