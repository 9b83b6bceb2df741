/** Keeps the memory small that bytes take up on their way through this process. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** After so many bytes what they were held in is given back. */
const FREE_EVERY_BYTES = 32 * 1024 ** 2
/**
 * So much the heap may grow before V8 looks through all of it. V8 counts what was read since it last did as growth, and after
 * a quiet time allows a heap of 30 MB only 24 MB of that: it would look through everything again and again.
 */
const HEAP_GROWTH_PERCENT = 200

let passedBytes = 0
let freeYoung: (() => void) | undefined

/**
 * Counts bytes that were read. Node holds each read in memory of its own, of which V8 lets 64 MiB and more pile up before it
 * looks for what nobody needs any more, and then looks through everything there is. Looking through the youngest before that
 * takes a millisecond or two and finds nearly all of it.
 */
export function countPassed(sizeBytes: number): void {
  passedBytes += sizeBytes
  if (passedBytes < FREE_EVERY_BYTES) return
  passedBytes = 0
  freeYoung ??= findCollector()
  freeYoung()
}

/** Passes chunks on, and counts them. */
export async function* passing<Chunk extends Uint8Array>(chunks: AsyncIterable<Chunk>): AsyncIterable<Chunk> {
  for await (const chunk of chunks) {
    countPassed(chunk.length)
    yield chunk
  }
}

/** The collector is there only in a context that is made while the flag is set. */
function findCollector(): () => void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`)
  setFlagsFromString('--expose-gc')
  const collect: NodeJS.GCFunction = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return () => void collect({ type: 'minor' })
}
