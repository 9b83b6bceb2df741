/** Provides helpers for model provider tests: their failures, and streams read to the end. */
import { expect } from 'vitest'
import { BackendFailure } from '../../src/providers/provider.ts'

/** A signal that is never aborted. */
export const never = new AbortController().signal

/** The result of an iterator that is done. */
export const noMore = { done: true, value: undefined }

/** Returns the BackendFailure with which `attempt` must reject. */
export async function failureOf(attempt: Promise<unknown>): Promise<BackendFailure> {
  const thrown = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(thrown).toBeInstanceOf(BackendFailure)
  return thrown as BackendFailure
}

/** Reads a stream; returns its chunks unchanged. */
export async function listReads(stream: AsyncIterator<Uint8Array, void, void>): Promise<Uint8Array[]> {
  const reads: Uint8Array[] = []
  for (let step = await stream.next(); !step.done; step = await stream.next()) reads.push(step.value)
  return reads
}

/** Reads all bytes of a stream. */
export async function readAll(stream: AsyncIterator<Uint8Array, void, void>): Promise<Buffer> {
  return Buffer.concat(await listReads(stream))
}
