/**
 * Computes the SHA-256 of a file in a worker thread, so that hashing a large file does not block requests.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { parentPort, Worker, workerData } from 'node:worker_threads'

const READ_BYTES = 1024 ** 2
/** A small heap suffices, because read buffers are outside the heap. */
const resourceLimits = { maxOldGenerationSizeMb: 32 }

/** Returns the digest in hexadecimal. @throws the signal's reason, or the error if the file cannot be read */
export async function digestFile(path: string, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { digestPath: path },
    resourceLimits,
    // Node.js options of the main process, such as `--input-type`, would prevent the thread from starting.
    execArgv: [],
  })
  // Prevents a crash if the thread fails after the signal has aborted, because `once` then no longer listens.
  worker.on('error', () => {})
  try {
    // `once` rejects if the thread fails.
    const [digest] = await once(worker, 'message', { signal })
    return digest
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    await worker.terminate()
  }
}

async function digestHere(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) hash.update(chunk)
  return hash.digest('hex')
}

const { digestPath } = (workerData ?? {}) as { digestPath?: string }
if (parentPort !== null && digestPath !== undefined) parentPort.postMessage(await digestHere(digestPath))
