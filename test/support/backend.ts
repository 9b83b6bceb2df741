/** Reads model providers' streams and errors. */
import { expect } from 'vitest'
import { BackendFailure } from '../../src/providers/provider.ts'

/** A signal that is never aborted. */
export const neverAborted = new AbortController().signal

/** The result of an exhausted iterator. */
export const iteratorDone = { done: true, value: undefined }

/** Returns the BackendFailure of `attempt`, which must reject. */
export async function failureOf(attempt: Promise<unknown>): Promise<BackendFailure> {
  const thrown = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(thrown).toBeInstanceOf(BackendFailure)
  return thrown as BackendFailure
}

/** Reads a stream to its end; returns its chunks. */
export async function readChunks(stream: AsyncIterator<Uint8Array, void, void>): Promise<Uint8Array[]> {
  const reads: Uint8Array[] = []
  for (let step = await stream.next(); !step.done; step = await stream.next()) reads.push(step.value)
  return reads
}

/** Reads a stream to its end; returns its bytes. */
export async function readAll(stream: AsyncIterator<Uint8Array, void, void>): Promise<Buffer> {
  return Buffer.concat(await readChunks(stream))
}
