/** Implements a minimal HTTP client with keep-alive connections for the benchmark. */
import { connect, type Socket } from 'node:net'

/** Thrown when a measurement is impossible, for example because a response is wrong or late. */
export class BenchFailure extends Error {
  override readonly name = 'BenchFailure'
}

/** Receives one response body in chunks, without HTTP framing. */
export interface Sink {
  onPayload(piece: Buffer): void
  /** Called when the response is complete. @throws BenchFailure if it is wrong. */
  onEnd(status: number): void
}

type ParserState = 'head' | 'body' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer-end'
const headEnd = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')
const none: Buffer = Buffer.alloc(0)

/** A keep-alive connection with at most one open request. */
export class Connection {
  private readonly socket: Socket
  private state: ParserState = 'head'
  private rest = none
  private remaining = 0
  private status = 0
  private sink: Sink | undefined
  private settle: { resolve: () => void; reject: (error: Error) => void } | undefined

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.onData(bytes))
    socket.on('error', (error) => this.fail(new BenchFailure(`The connection broke: ${error.message}`)))
    socket.on('close', () => this.fail(new BenchFailure('The server closed the connection early.')))
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new Connection(socket))
      })
    })
  }

  /** Sends one request; resolves when the sink has received the complete response. */
  exchange(request: Buffer | Iterable<Buffer>, sink: Sink): Promise<void> {
    return new Promise((resolve, reject) => {
      this.sink = sink
      this.settle = { resolve, reject }
      if (Buffer.isBuffer(request)) this.socket.write(request)
      else this.send(request[Symbol.iterator]())
    })
  }

  /** Writes the chunks, and waits whenever the socket's buffer is full. */
  private send(pieces: Iterator<Buffer, void>): void {
    for (let piece = pieces.next(); !piece.done; piece = pieces.next()) {
      if (this.socket.write(piece.value)) continue
      this.socket.once('drain', () => this.send(pieces))
      return
    }
  }

  close(): void {
    this.settle = undefined
    this.socket.destroy()
  }

  fail(error: Error): void {
    this.settle?.reject(error)
    this.close()
  }

  private onData(bytes: Buffer): void {
    const all = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes])
    let at = 0
    while (at < all.length) {
      const next = this.step(all, at)
      if (next < 0) break
      at = next
    }
    this.rest = at < all.length ? all.subarray(at) : none
  }

  /** Parses the next part of the response at `at`; returns the offset after it, or -1 if it is incomplete. */
  private step(all: Buffer, at: number): number {
    switch (this.state) {
      case 'head':
        return this.readHead(all, at)
      case 'chunk-size':
        return this.readChunkSize(all, at)
      case 'body':
      case 'chunk':
        return this.readPayload(all, at)
      case 'chunk-end':
      case 'trailer-end':
        if (all.length < at + 2) return -1
        if (this.state === 'trailer-end') this.finish()
        else this.state = 'chunk-size'
        return at + 2
    }
  }

  private readHead(all: Buffer, at: number): number {
    const end = all.indexOf(headEnd, at)
    if (end < 0) return -1
    const head = all.toString('latin1', at, end)
    this.status = Number(head.slice(9, 12))
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    this.remaining = Number(length ?? 0)
    this.state = length === undefined ? 'chunk-size' : 'body'
    if (length === '0' || this.status === 204) this.finish()
    return end + headEnd.length
  }

  private readChunkSize(all: Buffer, at: number): number {
    const end = all.indexOf(lineEnd, at)
    if (end < 0) return -1
    this.remaining = Number.parseInt(all.toString('latin1', at, end), 16)
    this.state = this.remaining === 0 ? 'trailer-end' : 'chunk'
    return end + lineEnd.length
  }

  private readPayload(all: Buffer, at: number): number {
    const end = Math.min(all.length, at + this.remaining)
    this.sink?.onPayload(all.subarray(at, end))
    this.remaining -= end - at
    if (this.remaining > 0) return end
    if (this.state === 'chunk') this.state = 'chunk-end'
    else this.finish()
    return end
  }

  private finish(): void {
    this.state = 'head'
    const { sink, settle } = this
    this.settle = undefined
    try {
      sink?.onEnd(this.status)
      settle?.resolve()
    } catch (error) {
      settle?.reject(error as Error)
    }
  }
}
