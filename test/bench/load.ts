/** Generates the benchmark's load: loops that send requests over keep-alive connections. */
import { BenchFailure, Connection, type Sink } from './connection.ts'

const none: Buffer = Buffer.alloc(0)

/** Checks JSON responses: the body if its length has not occurred before, otherwise only the status. */
export class JsonSink implements Sink {
  private readonly isRight: (body: unknown) => boolean
  private readonly goodLengths = new Set<number>()
  private pieces: Buffer[] = []
  private length = 0

  constructor(isRight: (body: unknown) => boolean) {
    this.isRight = isRight
  }

  onPayload(piece: Buffer): void {
    this.pieces.push(piece)
    this.length += piece.length
  }

  onEnd(status: number): void {
    if (status !== 200 || !this.goodLengths.has(this.length)) this.check(status)
    this.pieces = []
    this.length = 0
  }

  private check(status: number): void {
    const text = Buffer.concat(this.pieces).toString()
    if (status !== 200 || !this.isRight(JSON.parse(text))) {
      throw new BenchFailure(`Wrong answer, status ${status}: ${text.slice(0, 200)}`)
    }
    this.goodLengths.add(this.length)
  }
}

const wordMark = Buffer.from('"content":" word"')
const doneMark = Buffer.from('data: [DONE]\n\n')
const newline = 0x0a

/** Counts the content chunks of one stream and checks that it is complete. */
class StreamSink implements Sink {
  private readonly expectedChunks: number
  private readonly sentMs = performance.now()
  private carry = none
  private tail = none
  private start = ''
  chunks = 0
  /** Milliseconds from the request to the first content chunk. */
  firstTokenMs = 0

  constructor(expectedChunks: number) {
    this.expectedChunks = expectedChunks
  }

  onPayload(piece: Buffer): void {
    if (this.start === '') this.start = piece.toString('utf8', 0, 200)
    const text = this.carry.length === 0 ? piece : Buffer.concat([this.carry, piece])
    for (let at = text.indexOf(wordMark); at >= 0; at = text.indexOf(wordMark, at + wordMark.length)) {
      if (this.chunks++ === 0) this.firstTokenMs = performance.now() - this.sentMs
    }
    // Keeps the last bytes of an incomplete event, because a marker may start there.
    this.carry = text.at(-1) === newline ? none : text.subarray(-(wordMark.length - 1))
    this.tail = (piece.length < doneMark.length ? Buffer.concat([this.tail, piece]) : piece).subarray(
      -doneMark.length,
    )
  }

  onEnd(status: number): void {
    const isWhole = this.chunks === this.expectedChunks && this.tail.equals(doneMark)
    if (status === 200 && isWhole) return
    throw new BenchFailure(
      `Broken stream, status ${status}, ${this.chunks} of ${this.expectedChunks} chunks, ends ` +
        `${JSON.stringify(this.tail.toString())}, starts ${JSON.stringify(this.start)}`,
    )
  }
}

async function openConnections(port: number, count: number): Promise<Connection[]> {
  const connections: Connection[] = []
  // Opens at most 100 connections at a time, because a full listen queue (usually 511) delays a connection by
  // a second.
  while (connections.length < count) {
    const group = Math.min(100, count - connections.length)
    connections.push(...(await Promise.all(Array.from({ length: group }, () => Connection.open(port)))))
  }
  return connections
}

/** Runs one loop per connection; returns the elapsed milliseconds. @throws BenchFailure after `limitMs`. */
export async function runLoops(
  options: { port: number; connections: number; limitMs: number },
  loop: (connection: Connection, index: number) => Promise<void>,
): Promise<number> {
  const connections = await openConnections(options.port, options.connections)
  const late = new BenchFailure(`The run did not finish within ${options.limitMs} ms.`)
  const timer = setTimeout(() => {
    for (const connection of connections) connection.fail(late)
  }, options.limitMs)
  const startedMs = performance.now()
  try {
    await Promise.all(connections.map(loop))
    return performance.now() - startedMs
  } finally {
    clearTimeout(timer)
    for (const connection of connections) connection.close()
  }
}

export interface RequestRun {
  readonly port: number
  /** The raw bytes of one request. */
  readonly request: Buffer
  readonly connections: number
  /** The total number of requests on all connections. */
  readonly count: number
  /** Returns whether the parsed body of a 200 response is correct. */
  readonly isRight: (body: unknown) => boolean
  readonly limitMs: number
}

/** Sends `count` requests; returns the elapsed milliseconds. @throws BenchFailure on a wrong response. */
export async function runRequests(run: RequestRun): Promise<number> {
  let left = run.count
  return runLoops(run, async (connection) => {
    const sink = new JsonSink(run.isRight)
    while (left-- > 0) await connection.exchange(run.request, sink)
  })
}

export interface StreamRun {
  readonly port: number
  readonly request: Buffer
  /** The number of connections, which is also the number of concurrent streams. */
  readonly connections: number
  /** The number of consecutive streams on each connection. */
  readonly streamsEach: number
  /** The expected number of content chunks in each stream. */
  readonly chunks: number
  readonly limitMs: number
}

/** Runs streams; returns each stream's milliseconds to its first content chunk. @throws BenchFailure */
export async function runStreams(run: StreamRun): Promise<number[]> {
  const firstTokensMs: number[] = []
  await runLoops(run, async (connection) => {
    for (let stream = 0; stream < run.streamsEach; stream++) {
      const sink = new StreamSink(run.chunks)
      await connection.exchange(run.request, sink)
      firstTokensMs.push(sink.firstTokenMs)
    }
  })
  return firstTokensMs
}
