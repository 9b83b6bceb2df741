/** The backend that runs a model in this process: chats and embeddings from a GGUF file, without any other program. */
import type { Clock } from '../lib/clock.ts'
import { isJsonObject } from '../lib/formats/json.ts'
import { newId, type Random } from '../lib/ids.ts'
import { callersMistake } from './failures.ts'
import { Embedder } from './in-process/embeddings.ts'
import { EventStream } from './in-process/events.ts'
import { EventWriter, WholeWriter } from './in-process/format-answer.ts'
import { generateAnswer, type LocalAnswer } from './in-process/generate.ts'
import { Queue } from './in-process/queue.ts'
import { readChatRequest } from './in-process/request.ts'
import type { Listener } from './in-process/sampling.ts'
import type { ChattingModel } from './in-process/template.ts'
import type { LocalModel, Place } from './load-model.ts'
import { BackendFailure, type BackendRequest, type ChatBackend } from './provider.ts'
import type { AnswerHead } from './render-answer.ts'

/** What the backend takes from outside. */
export interface LocalModelBackendOptions {
  /** The provider's name as operators write it. */
  readonly name: string
  /** Closed with the backend. */
  readonly model: LocalModel
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly random: Random
}

/**
 * Makes a backend of a loaded model. Two requests are worked on at once, six wait, and any further one is refused with 429.
 * Decision: 2 (`PARLEY_LOCAL_MODEL`), 7, 12.
 */
export function createLocalModelBackend(options: LocalModelBackendOptions): ChatBackend {
  const { name, model, clock, random } = options
  const queue = new Queue(model.placeCount, clock)
  const closing = new AbortController()
  const embedder = new Embedder(model)
  const newSeed = () => Buffer.from(random(4)).readUInt32LE()
  const newCallId = () => newId('call_', 24, random)

  const toHead = (body: BackendRequest['body']): AnswerHead => ({
    id: newId('chatcmpl-', 24, random),
    created: Math.floor(clock.now() / 1000),
    model: typeof body.model === 'string' ? body.model : model.id,
  })

  async function answer({ body, signal }: BackendRequest, listener: Listener): Promise<LocalAnswer> {
    const chatting = asChatting(model)
    const { hasTools, places } = chatting.chat
    const request = readChatRequest(body, { hasTools, newSeed })
    const ended = AbortSignal.any([signal, closing.signal])
    return queue.run(ended, (index) => {
      const place = places[index] as Place
      const { monotonic } = clock
      return generateAnswer(request, { model: chatting, place, signal: ended, listener, monotonic })
    })
  }

  return {
    name,
    async complete(request) {
      const writer = new WholeWriter(newCallId)
      const ended = await answer(request, writer)
      return Buffer.from(writer.render(toHead(request.body), ended))
    },
    async stream({ body, signal }) {
      const leaving = new AbortController()
      const events = new EventStream(() => leaving.abort())
      const writer = new EventWriter(events, toHead(body), newCallId)
      const hasUsage = isJsonObject(body.stream_options) && body.stream_options.include_usage === true
      answer({ body, signal: AbortSignal.any([signal, leaving.signal]) }, writer).then(
        (ended) => writer.end(ended, hasUsage),
        (reason: unknown) => events.fail(reason),
      )
      return events
    },
    async embed({ body, signal }) {
      const ended = AbortSignal.any([signal, closing.signal])
      return [Buffer.from(await queue.run(ended, () => embedder.embed(body, ended)))]
    },
    async listModels(signal) {
      signal.throwIfAborted()
      const { id, created, contextTokens, chat } = model
      const chats = chat !== undefined
      return [{ id, created, ownedBy: name, contextLength: contextTokens, chats, embeds: true }]
    },
    async close() {
      closing.abort(new BackendFailure('unreachable', 'The local model is being closed.'))
      await queue.settled()
      await model.model.dispose()
    },
  }
}

/** @throws BackendFailure 400 for a model made for embeddings. */
function asChatting(model: LocalModel): ChattingModel {
  const { chat } = model
  if (chat === undefined) throw callersMistake('model', 'must be one that chats; this one makes embeddings')
  return { ...model, chat }
}
