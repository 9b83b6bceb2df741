/** Reads model providers' streams and errors. */
import { expect } from 'vitest'
import { BackendFailure } from '../../src/providers/provider.ts'

export const neverAborted = new AbortController().signal

/** The result of an exhausted iterator. */
export const iteratorDone = { done: true, value: undefined }

/** Returns the BackendFailure with which `attempt` must reject. */
export async function failureOf(attempt: Promise<unknown>): Promise<BackendFailure> {
  const thrown = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(thrown).toBeInstanceOf(BackendFailure)
  return thrown as BackendFailure
}

export async function readChunks(stream: AsyncIterator<Uint8Array, void, void>): Promise<Uint8Array[]> {
  const reads: Uint8Array[] = []
  for (let step = await stream.next(); !step.done; step = await stream.next()) reads.push(step.value)
  return reads
}

export async function readAll(stream: AsyncIterator<Uint8Array, void, void>): Promise<Buffer> {
  return Buffer.concat(await readChunks(stream))
}
