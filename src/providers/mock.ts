/** Provides deterministic responses for development and tests, controlled by directives in messages. */
import { isJsonObject } from '../lib/formats/json.ts'
import { isCallersMistake } from './failures.ts'
import { type Answer, makeAnswer, readDirectives } from './mock/answer.ts'
import type { Directives } from './mock/directives.ts'
import { makeEmbeddings } from './mock/embeddings.ts'
import { renderEvents, renderWhole } from './mock/render.ts'
import { BackendFailure, type BackendModel, type BackendRequest, type ChatBackend } from './provider.ts'
import { doneEvent } from './render-answer.ts'

export interface MockBackendOptions {
  readonly name: string
  readonly clock: { now(): number }
  newId(): string
  wait(ms: number, signal: AbortSignal): Promise<void>
}

const models: readonly BackendModel[] = [
  { id: 'mock', created: 1_735_689_600, ownedBy: 'parley', chats: true },
  { id: 'mock-embedding', created: 1_735_689_600, ownedBy: 'parley', chats: false },
]

/** Maximum number of events per read if there is no delay. */
const eventsPerRead = 64

/**
 * Responds with `You said: <last user text>` unless the message contains directives. A non-streamed
 * completion counts as one chunk.
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

async function acceptRequest(
  { body, signal }: BackendRequest,
  { newId }: MockBackendOptions,
): Promise<{ answer: Answer; directives: Directives }> {
  signal.throwIfAborted()
  const directives = readDirectives(body)
  if (directives.errorStatus !== undefined) throw requestedFailure(directives.errorStatus)
  if (directives.hangs) await waitForAbort(signal)
  return { answer: makeAnswer(body, directives, newId), directives }
}

/** Groups events into reads, or delays each event; fails after `breakAfterChunks` chunks. */
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

function requestedFailure(status: number): BackendFailure {
  const message = `The mock provider was instructed to return ${status}.`
  return new BackendFailure('status', message, {
    status,
    ...(status === 429 && { retryAfterSeconds: 1 }),
    ...(isCallersMistake({ status }) && { said: { message, code: 'mock_error' } }),
  })
}

function brokenConnection(): BackendFailure {
  return new BackendFailure('unreachable', 'The mock provider was instructed to drop the connection.')
}
