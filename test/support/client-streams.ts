/**
 * Passes a scripted provider's stream through the code that forwards chat streams, and splits bytes at random
 * positions.
 */
import fc from 'fast-check'
import { askForStream } from '../../src/chat/answers/answer-stream.ts'
import type { AnswerOptions } from '../../src/chat/answers/model-answer.ts'
import { dataOf, splitRun } from '../../src/chat/sse-reader.ts'
import type { ChatBackend } from '../../src/providers/provider.ts'

/** Returns options for reading a model's response. They create the call ids `call_1`, `call_2` and so on. */
export function answerOptions(options: Partial<AnswerOptions> = {}): AnswerOptions {
  let calls = 0
  return {
    choices: 1,
    withholdsCalls: false,
    limit: undefined,
    continued: undefined,
    newNames: () => ({ id: 'chatcmpl-made', created: 1, model: 'made' }),
    newCallId: () => `call_${++calls}`,
    ...options,
  }
}

/** Returns the bytes that a client receives if the provider sends `reads`, and the error, if any. */
export async function readClientBytes(
  reads: readonly Uint8Array[],
  options: AnswerOptions = answerOptions(),
): Promise<{ bytes: Buffer; failure: unknown }> {
  const runs: Uint8Array[] = []
  try {
    for await (const run of clientChunksOf(reads, options)) runs.push(run)
    return { bytes: Buffer.concat(runs), failure: undefined }
  } catch (failure) {
    return { bytes: Buffer.concat(runs), failure }
  }
}

/** Yields the bytes that a client receives if the provider sends `reads`, chunk by chunk. */
export async function* clientChunksOf(
  reads: readonly Uint8Array[],
  options: AnswerOptions = answerOptions(),
): AsyncGenerator<Uint8Array, void, void> {
  const request = { body: {}, signal: new AbortController().signal }
  const answer = await askForStream(backendOf(reads), request, undefined, options)
  for (let run = answer.first; run !== undefined; run = await answer.next()) yield run
}

/** Parses the JSON data of all events in the bytes. */
export function parseEventData(bytes: Buffer): unknown[] {
  return [...splitRun(bytes)].map((event) => JSON.parse(dataOf(event) as string))
}

function backendOf(reads: readonly Uint8Array[]): ChatBackend {
  return {
    name: 'scripted',
    stream: async () => hand(reads),
    complete: () => Promise.reject(new Error('not scripted')),
    embed: () => Promise.reject(new Error('not scripted')),
    listModels: async () => [],
    close: async () => {},
  }
}

async function* hand(reads: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, void> {
  yield* reads
}

/** Generates positions at which to split a text, as fractions of its length. */
export const splitPositions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 })

export function splitAt(bytes: Buffer, shares: readonly number[]): Buffer[] {
  const places = [0, ...shares.map((share) => Math.floor(share * bytes.length)), bytes.length].sort(
    (a, b) => a - b,
  )
  return places.slice(1).map((place, index) => bytes.subarray(places[index], place))
}
