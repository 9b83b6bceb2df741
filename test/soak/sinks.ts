/** Checks the answers of the soak without measuring them. */
import { BenchFailure, type Sink } from '../bench/connection.ts'

/** Expects status 200 and collects the text. */
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

/** Expects status 200 and a minimum number of bytes, and discards them. */
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
