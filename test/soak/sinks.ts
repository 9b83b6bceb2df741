/** Checks responses of the soak test's server. */
import { BenchFailure, type Sink } from '../bench/connection.ts'

/** Requires status 200 and collects the text. */
export class TextSink implements Sink {
  private readonly pieces: Buffer[] = []
  text = ''

  onPayload(piece: Buffer): void {
    this.pieces.push(piece)
  }

  onEnd(status: number): void {
    this.text = Buffer.concat(this.pieces).toString()
    if (status !== 200) throw new BenchFailure(`Status ${status}: ${this.text.slice(0, 200)}`)
  }
}

/** Requires status 200 and a minimum number of bytes, and discards the bytes. */
export class BytesSink implements Sink {
  private readonly atLeast: number
  private received = 0

  constructor(atLeast: number) {
    this.atLeast = atLeast
  }

  onPayload(piece: Buffer): void {
    this.received += piece.length
  }

  onEnd(status: number): void {
    if (status === 200 && this.received >= this.atLeast) return
    throw new BenchFailure(`Status ${status}, ${this.received} bytes.`)
  }
}
