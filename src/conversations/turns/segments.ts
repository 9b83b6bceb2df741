/**
 * Groups a turn's events into runs, and encodes them for storage without the bytes that repeat the previous
 * event (ADR 0049).
 */

/**
 * `chat` is a server-sent event of the chat API, `completion` a whole answer, and `failure` the event that
 * ends a broken stream; a client may receive these. `step` is a server tool call, its result or the end of
 * the turn; clients never receive it.
 */
export type LogKind = 'chat' | 'completion' | 'failure' | 'step'

export interface LogEntry {
  readonly kind: LogKind
  readonly bytes: Buffer
}

/** Consecutive entries of the same kind in one object, which costs less than an object for each. */
export interface LogRun {
  readonly kind: LogKind
  readonly bytes: Uint8Array
  /** The end of each entry in `bytes`. */
  readonly ends: readonly number[]
}

const kinds: readonly LogKind[] = ['chat', 'completion', 'failure', 'step']
/** The kind and three lengths of at most five bytes each. */
const MAX_HEAD_BYTES = 16
/** Enough for the few events that a slow stream produces between two flushes. */
const FIRST_BYTES = 512
const LF = 0x0a
/** Memory of finished encoders, because V8 collects garbage more often the more memory buffers take. */
const spares: Uint8Array[] = []
const MAX_SPARES = 64
const MAX_SPARE_BYTES = 16 * 1024

export function toBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}

/** Converts complete server-sent events to a run. */
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

export function joinEntries(kind: LogKind, entries: readonly Uint8Array[]): LogRun {
  let end = 0
  const ends = entries.map(({ length }) => {
    end += length
    return end
  })
  return { kind, bytes: Buffer.concat(entries), ends }
}

export function* entriesOf({ kind, bytes, ends }: LogRun): Generator<LogEntry, void, void> {
  const source = toBuffer(bytes)
  let start = 0
  for (const end of ends) {
    yield { kind, bytes: source.subarray(start, end) }
    start = end
  }
}

export async function* toEntries(
  batches: AsyncIterable<readonly LogRun[]>,
): AsyncGenerator<LogEntry, void, void> {
  for await (const runs of batches) for (const run of runs) yield* entriesOf(run)
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

export function countEntries(runs: readonly LogRun[]): number {
  return runs.reduce((count, { ends }) => count + ends.length, 0)
}

export function encodeSegment(runs: readonly LogRun[]): Uint8Array {
  const encoder = new SegmentEncoder()
  for (const run of runs) encoder.add(run)
  return encoder.encode()
}

/**
 * Encodes entries as they arrive. An encoded entry consists of its kind, the lengths of the shared start, the
 * shared end and the rest, and the rest itself.
 */
export class SegmentEncoder {
  count = 0
  private target: Uint8Array | undefined
  private at = 0
  private before: Bytes = viewOf(new Uint8Array(0))
  private beforeFrom = 0
  private beforeTo = 0

  add({ kind, bytes, ends }: LogRun): void {
    const kindIndex = kinds.indexOf(kind)
    const current = viewOf(bytes)
    this.count += ends.length
    let from = 0
    for (const to of ends) {
      const { before, beforeFrom, beforeTo } = this
      const most = Math.min(beforeTo - beforeFrom, to - from)
      const start = sharedStart(before, beforeFrom, current, from, most)
      // The shared end may not overlap the shared start.
      const end = sharedEnd(before, beforeTo, current, to, most - start)
      this.writeHead(kindIndex, start, end, to - from - start - end)
      this.writeRest(bytes, from + start, to - end)
      this.before = current
      this.beforeFrom = from
      this.beforeTo = to
      from = to
    }
  }

  /** Returns the entries in separate memory. The encoder cannot be used afterwards. */
  encode(): Uint8Array {
    const { target } = this
    if (target === undefined) return new Uint8Array(0)
    if (target.length <= MAX_SPARE_BYTES && spares.length < MAX_SPARES) spares.push(target)
    this.target = undefined
    return target.slice(0, this.at)
  }

  private writeHead(kindIndex: number, start: number, end: number, length: number): void {
    const target = this.withRoom(length + MAX_HEAD_BYTES)
    target[this.at] = kindIndex
    let at = writeVarint(target, this.at + 1, start)
    at = writeVarint(target, at, end)
    this.at = writeVarint(target, at, length)
  }

  /** Usually only a few bytes remain, for which a loop is faster than `set`. */
  private writeRest(bytes: Uint8Array, from: number, to: number): void {
    const { at } = this
    const target = this.target as Uint8Array
    if (to - from > 32) target.set(bytes.subarray(from, to), at)
    else for (let index = from; index < to; index++) target[at + index - from] = bytes[index] as number
    this.at = at + to - from
  }

  private withRoom(bytes: number): Uint8Array {
    let target = this.target ?? spares.pop() ?? new Uint8Array(FIRST_BYTES)
    if (this.at + bytes > target.length) {
      const larger = new Uint8Array(2 * target.length + bytes)
      larger.set(target)
      target = larger
    }
    this.target = target
    return target
  }
}

/** Two views of the same bytes, because comparing four bytes at a time takes a third of the time. */
interface Bytes {
  readonly bytes: Uint8Array
  readonly words: DataView
}

function viewOf(bytes: Uint8Array): Bytes {
  return { bytes, words: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) }
}

/** Counts the equal bytes that start at `oneFrom` and `otherFrom`, up to `most`. */
function sharedStart(one: Bytes, oneFrom: number, other: Bytes, otherFrom: number, most: number): number {
  let length = 0
  while (
    length + 4 <= most &&
    one.words.getInt32(oneFrom + length) === other.words.getInt32(otherFrom + length)
  )
    length += 4
  while (length < most && one.bytes[oneFrom + length] === other.bytes[otherFrom + length]) length += 1
  return length
}

/** Counts the equal bytes that end before `oneTo` and `otherTo`, up to `most`. */
function sharedEnd(one: Bytes, oneTo: number, other: Bytes, otherTo: number, most: number): number {
  let length = 0
  while (
    length + 4 <= most &&
    one.words.getInt32(oneTo - length - 4) === other.words.getInt32(otherTo - length - 4)
  )
    length += 4
  while (length < most && one.bytes[oneTo - 1 - length] === other.bytes[otherTo - 1 - length]) length += 1
  return length
}

function writeVarint(target: Uint8Array, at: number, value: number): number {
  let next = at
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) target[next++] = (rest & 0x7f) | 0x80
  target[next++] = rest
  return next
}

export function decodeSegment(segment: Uint8Array): LogRun[] {
  const cursor = new SegmentCursor(segment)
  const runs: { kind: LogKind; first: number; ends: number[] }[] = []
  while (cursor.next()) {
    const { kind, from, to } = cursor
    const run = runs.at(-1)
    if (run?.kind === kind) run.ends.push(to - run.first)
    else runs.push({ kind, first: from, ends: [to - from] })
  }
  return runs.map(({ kind, first, ends }) => ({
    ...{ kind, ends },
    bytes: cursor.bytes.subarray(first, first + (ends.at(-1) as number)),
  }))
}

/**
 * Decodes one entry at a time without an object for each, and reports how much an entry shares with the
 * previous one.
 */
export class SegmentCursor {
  kind: LogKind = 'chat'
  /** All entries so far; the current one is between `from` and `to`. */
  readonly bytes: Buffer
  from = 0
  to = 0
  sharedStart = 0
  sharedEnd = 0
  private readonly source: Uint8Array
  private at = 0

  /** Decodes to `memory` if it is large enough. */
  constructor(segment: Uint8Array, memory?: Buffer) {
    this.source = segment
    const size = this.measure()
    this.bytes = memory !== undefined && memory.length >= size ? memory : Buffer.allocUnsafe(size)
    this.at = 0
  }

  /** Moves to the next entry; returns false after the last. */
  next(): boolean {
    const { bytes, source, from, to } = this
    if (this.at >= source.length) return false
    this.kind = kinds[source[this.at++] as number] as LogKind
    const start = this.readVarint()
    const end = this.readVarint()
    const length = this.readVarint()
    bytes.copyWithin(to, from, from + start)
    for (let index = 0; index < length; index++) bytes[to + start + index] = source[this.at + index] as number
    bytes.copyWithin(to + start + length, to - end, to)
    this.at += length
    this.from = to
    this.to = to + start + length + end
    this.sharedStart = start
    this.sharedEnd = end
    return true
  }

  /** Returns the size of all entries in bytes, so that one buffer can hold them. */
  private measure(): number {
    let sum = 0
    while (this.at < this.source.length) {
      this.at += 1
      const shared = this.readVarint() + this.readVarint()
      const length = this.readVarint()
      sum += shared + length
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
