/** What the tests of both backends need: their failures, and streams read to the end. */
import { expect } from 'vitest'
import { BackendFailure } from '../../src/providers/provider.ts'

/** A signal that nobody aborts. */
export const never = new AbortController().signal

/** What an iteration that is over answers. */
export const noMore = { done: true, value: undefined }

/** The failure that `attempt` ends in; fails the test where it ends otherwise. */
export async function failureOf(attempt: Promise<unknown>): Promise<BackendFailure> {
  const thrown = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(thrown).toBeInstanceOf(BackendFailure)
  return thrown as BackendFailure
}

/** All reads of a stream, as they came. */
export async function listReads(stream: AsyncIterator<Uint8Array, void, void>): Promise<Uint8Array[]> {
  const reads: Uint8Array[] = []
  for (let step = await stream.next(); !step.done; step = await stream.next()) reads.push(step.value)
  return reads
}

/** All bytes of a stream. */
export async function readAll(stream: AsyncIterator<Uint8Array, void, void>): Promise<Buffer> {
  return Buffer.concat(await listReads(stream))
}
