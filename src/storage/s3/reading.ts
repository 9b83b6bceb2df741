/** Streams an object at its reader's speed, and reconnects after connection failures. */
import { Readable } from 'node:stream'
import type { ByteRange } from '../../http/ranges.ts'
import { countExternalBytes } from '../../lib/external-memory.ts'
import type { Bucket, FoundObject } from './bucket.ts'
import { rethrowS3, toS3Failure } from './failure.ts'

const BUFFERED_BYTES = 256 * 1024
/** Maximum number of consecutive responses that fail before the first byte. */
const MAX_BREAKS = 3

interface Reading {
  readonly bucket: Bucket
  readonly key: string
  readonly signal: AbortSignal
}

/**
 * Opens an object. Destroying the stream ends the S3 call. @throws Error if part of the range is missing;
 * ServiceError `service_unavailable`.
 */
export async function openObject(
  bucket: Bucket,
  key: string,
  range: ByteRange | undefined,
  closing: AbortSignal,
): Promise<Readable> {
  const leaving = new AbortController()
  const reading = { bucket, key, signal: AbortSignal.any([closing, leaving.signal]) }
  const first = await findPart(reading, range)
  const start = range?.start ?? 0
  const chunks = readOn(reading, first, { start, end: start + first.sizeBytes - 1 })
  return new Readable({
    highWaterMark: BUFFERED_BYTES,
    read() {
      chunks.next().then(
        ({ value }) => this.push(value ?? null),
        (error) => this.destroy(error),
      )
    },
    destroy(error, callback) {
      leaving.abort()
      callback(error)
    },
  })
}

async function* readOn(
  reading: Reading,
  first: FoundObject,
  { start, end }: ByteRange,
): AsyncGenerator<Buffer, void, void> {
  let { body } = first
  let next = start
  for (let breaks = 1; ; breaks++) {
    let failure: unknown
    try {
      for await (const chunk of body) {
        next += chunk.length
        // Counts only received bytes; the response that forwards them counts them again when they are sent.
        countExternalBytes(chunk.length)
        breaks = 0
        yield chunk
      }
    } catch (error) {
      failure = error
    }
    if (next > end) return
    if (reading.signal.aborted) throw reading.signal.reason
    if (breaks === MAX_BREAKS) rethrowS3(toS3Failure(failure ?? new Error('the response ended early')))
    body = (await findPart(reading, { start: next, end })).body
  }
}

async function findPart(
  { bucket, key, signal }: Reading,
  range: ByteRange | undefined,
): Promise<FoundObject> {
  const found = await bucket.find(key, range, signal).catch(rethrowS3)
  if (found === undefined) throw new Error(`the object ${key} does not exist`)
  const { body, contentRange = 'no partial content' } = found
  if (range === undefined || contentRange.startsWith(`bytes ${range.start}-${range.end}/`)) return found
  body.destroy()
  throw new Error(
    `S3 returned ${contentRange} of the object ${key} instead of bytes ${range.start}-${range.end}`,
  )
}
