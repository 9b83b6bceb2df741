/** The load of the bench: closed loops over keep-alive sockets, light enough that the server is what is measured. */
import { BenchFailure, Connection, type Sink } from './connection.ts'

const none: Buffer = Buffer.alloc(0)

/** Collects JSON answers and checks them: in full when the length is new, by length otherwise. */
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

/** Counts the content chunks of one stream and checks that it is whole. */
class StreamSink implements Sink {
  private readonly expectedChunks: number
  private readonly sentMs = performance.now()
  private carry = none
  private tail = none
  private start = ''
  chunks = 0
  /** Milliseconds from sending the request to the first content chunk. */
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
    // A piece that ends with a whole event holds no half mark.
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
  // In small groups, so that no listen queue of the usual 511 overflows and costs a second of retry.
  while (connections.length < count) {
    const group = Math.min(100, count - connections.length)
    connections.push(...(await Promise.all(Array.from({ length: group }, () => Connection.open(port)))))
  }
  return connections
}

/** Runs one loop per connection until all are done or one has failed or time is up; returns the milliseconds it took. */
export async function runLoops(
  options: { port: number; connections: number; limitMs: number },
  loop: (connection: Connection, index: number) => Promise<void>,
): Promise<number> {
  const connections = await openConnections(options.port, options.connections)
  const late = new BenchFailure(`Not done after ${options.limitMs} ms.`)
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

/** A run of whole answers. */
export interface RequestRun {
  readonly port: number
  /** The request, head and body, as it goes over the wire. */
  readonly request: Buffer
  readonly connections: number
  /** How many requests all connections together send. */
  readonly count: number
  /** Whether a parsed 200 answer is the right one. */
  readonly isRight: (body: unknown) => boolean
  readonly limitMs: number
}

/**
 * Sends `count` requests, each connection the next one as soon as its answer is in; returns the milliseconds it took.
 * @throws BenchFailure on the first wrong answer.
 */
export async function runRequests(run: RequestRun): Promise<number> {
  let left = run.count
  return runLoops(run, async (connection) => {
    const sink = new JsonSink(run.isRight)
    while (left-- > 0) await connection.exchange(run.request, sink)
  })
}

/** A run of streamed answers. */
export interface StreamRun {
  readonly port: number
  readonly request: Buffer
  /** How many streams run at the same time. */
  readonly connections: number
  /** How many streams each connection runs, one after the other. */
  readonly streamsEach: number
  /** Content chunks each stream must bring before `[DONE]`. */
  readonly chunks: number
  readonly limitMs: number
}

/**
 * Runs streams and checks that every one is whole; returns each one's milliseconds to the first content chunk.
 * @throws BenchFailure on the first broken stream.
 */
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
