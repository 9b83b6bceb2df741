/** A backend without a model: deterministic answers for development, tests and load, steered by directives in the message. */

import { isJsonObject } from '../lib/formats/json.ts'
import { type Answer, makeAnswer, readDirectives } from './mock/answer.ts'
import type { Directives } from './mock/directives.ts'
import { makeEmbeddings } from './mock/embeddings.ts'
import { renderEvents, renderWhole } from './mock/render.ts'
import { BackendFailure, type BackendModel, type BackendRequest, type ChatBackend } from './provider.ts'
import { doneEvent } from './render-answer.ts'

/** What the mock backend takes from outside. */
export interface MockBackendOptions {
  /** The provider's name as operators write it. */
  readonly name: string
  /** Epoch milliseconds. */
  readonly clock: { now(): number }
  /** Random base62 text, different each time. */
  newId(): string
  /** Resolves after so many milliseconds, or rejects when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

const models: readonly BackendModel[] = [
  { id: 'mock', created: 1_735_689_600, ownedBy: 'parley', chats: true },
  { id: 'mock-embedding', created: 1_735_689_600, ownedBy: 'parley', chats: false },
]

/** How many events one read brings at most when nothing delays them. */
const eventsPerRead = 64

/** The caller's mistakes a provider explains in its answer; of other statuses it says nothing a caller may read. */
const explainedStatuses: ReadonlySet<number> = new Set([400, 409, 413, 415, 422])

/**
 * Creates the mock backend. It answers `You said: <last user text>`, calls tools, follows `response_format`, and obeys the
 * directives `[[tool:NAME {json}]]`, `[[tokens:N]]`, `[[delay:MS]]`, `[[error:STATUS]]`, `[[break:N]]` and `[[hang]]` in the
 * last user message. A whole answer counts as one chunk to `delay`, and as broken by any `break`. An aborted call fails with
 * its signal's reason. Embeddings know no directives. Decision: 7 (Mock backend), 8 (Embeddings).
 */
export function createMockBackend(options: MockBackendOptions): ChatBackend {
  const now = () => Math.floor(options.clock.now() / 1000)
  return {
    name: options.name,
    async complete({ body, signal }) {
      const { answer, directives } = await acceptRequest({ body, signal }, options)
      if (directives.breakAfterChunks !== undefined) throw brokenConnection()
      await pause(directives.delayMs, signal, options)
      return Buffer.from(renderWhole(answer, now()))
    },
    async stream({ body, signal }) {
      const { answer, directives } = await acceptRequest({ body, signal }, options)
      const hasUsage = isJsonObject(body.stream_options) && body.stream_options.include_usage === true
      return createEventReader(renderEvents(answer, now(), hasUsage), directives, signal, options)
    },
    async embed({ body, signal }) {
      signal.throwIfAborted()
      return [Buffer.from(makeEmbeddings(body))]
    },
    async listModels(signal) {
      signal.throwIfAborted()
      return models
    },
    async close() {},
  }
}

/** Fails or hangs if the message says so; else works out the answer. */
async function acceptRequest(
  { body, signal }: BackendRequest,
  { newId }: MockBackendOptions,
): Promise<{ answer: Answer; directives: Directives }> {
  signal.throwIfAborted()
  const directives = readDirectives(body)
  if (directives.errorStatus !== undefined) throw toldToFail(directives.errorStatus)
  if (directives.hangs) await waitForAbort(signal)
  return { answer: makeAnswer(body, directives, newId), directives }
}

/** Hands events out as reads: many at a time, or one after each delay; breaks off where the directives say so. */
function createEventReader(
  events: Iterator<string, void>,
  { delayMs, breakAfterChunks }: Directives,
  signal: AbortSignal,
  options: MockBackendOptions,
): AsyncIterator<Uint8Array, void, void> {
  const leaving = new AbortController()
  const waitSignal = delayMs > 0 ? AbortSignal.any([signal, leaving.signal]) : signal
  const batchSize = delayMs > 0 ? 1 : eventsPerRead
  let chunksLeft = breakAfterChunks ?? Number.POSITIVE_INFINITY
  let upcoming = events.next()
  let isOver = false

  async function read(): Promise<IteratorResult<Uint8Array, void>> {
    await pause(delayMs, waitSignal, options)
    if (chunksLeft === 0) throw brokenConnection()
    let text = ''
    for (let size = 0; size < batchSize && chunksLeft > 0 && !upcoming.done; size += 1) {
      text += upcoming.value
      upcoming = events.next()
      chunksLeft -= 1
    }
    if (upcoming.done && breakAfterChunks === undefined) {
      isOver = true
      text += doneEvent
    } else if (upcoming.done) {
      chunksLeft = 0
    }
    return { done: false, value: Buffer.from(text) }
  }

  return {
    async next() {
      if (isOver) return { done: true, value: undefined }
      try {
        return await read()
      } catch (failure) {
        if (leaving.signal.aborted) return { done: true, value: undefined }
        isOver = true
        throw failure
      }
    },
    async return() {
      isOver = true
      leaving.abort()
      return { done: true, value: undefined }
    },
  }
}

/** Waits, however long that is; fails with the signal's reason once it is aborted, whatever the wait itself fails with. */
async function pause(ms: number, signal: AbortSignal, { wait }: MockBackendOptions): Promise<void> {
  signal.throwIfAborted()
  if (ms > 0) await wait(ms, signal).catch((failure: unknown) => Promise.reject(signal.reason ?? failure))
  signal.throwIfAborted()
}

function waitForAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

function toldToFail(status: number): BackendFailure {
  const message = `The mock backend was told to answer ${status}.`
  return new BackendFailure('status', message, {
    status,
    ...(status === 429 && { retryAfterSeconds: 1 }),
    ...(explainedStatuses.has(status) && { said: { message, code: 'mock_error' } }),
  })
}

function brokenConnection(): BackendFailure {
  return new BackendFailure('unreachable', 'The mock backend was told to break off.')
}
