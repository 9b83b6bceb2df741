/** Recognizes bodies in tiny chunks, which cost far more CPU and memory than their bytes. */
import { ServiceError } from '../lib/errors.ts'

const FREE_CHUNKS = 5_000
/**
 * Minimum average size of chunks; far smaller than a network packet, in which a slow connection delivers its
 * bytes.
 */
const MIN_AVERAGE_BYTES = 128

export class ChunkCounter {
  bytes = 0
  private chunks = 0

  add(chunk: Uint8Array): void {
    this.bytes += chunk.length
    this.chunks += 1
  }

  get isTooFine(): boolean {
    return this.chunks > FREE_CHUNKS + this.bytes / MIN_AVERAGE_BYTES
  }
}

export function tooFine(): ServiceError {
  return new ServiceError(
    'invalid_value',
    `The body is sent in chunks that are too small; send at least ${MIN_AVERAGE_BYTES} bytes in each.`,
  )
}
