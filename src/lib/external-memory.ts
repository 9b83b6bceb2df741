/**
 * Frees the memory of transferred bytes before V8 accumulates 64 MiB of it. This halves the CPU time of
 * uploads (`npm run bench -- --only uploads`).
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const COLLECT_EVERY_BYTES = 32 * 1024 ** 2
/**
 * V8 counts received bytes as heap growth, so its default setting would cause continuous full collections.
 */
const HEAP_GROWTH_PERCENT = 200

let countedBytes = 0
let collectYoung: (() => void) | undefined

export function countExternalBytes(sizeBytes: number): void {
  countedBytes += sizeBytes
  if (countedBytes < COLLECT_EVERY_BYTES) return
  countedBytes = 0
  collectYoung ??= findCollector()
  collectYoung()
}

export async function* countingExternalBytes<Chunk extends Uint8Array>(
  chunks: AsyncIterable<Chunk>,
): AsyncIterable<Chunk> {
  for await (const chunk of chunks) {
    countExternalBytes(chunk.length)
    yield chunk
  }
}

/** V8 adds `gc` only to contexts created while the flag is set. */
function findCollector(): () => void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`)
  setFlagsFromString('--expose-gc')
  const collect: NodeJS.GCFunction = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return () => void collect({ type: 'minor' })
}
